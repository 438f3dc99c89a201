//! How refusals can be made to look, and what a builder refuses.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use redlock_core::{AcquireOptions, Redlock, Wait};
use redlock_tower::{
    ConfigErrorKind, PathKey, RedlockLayer, RedlockLayerBuilder, Rejection, RejectionKind,
    ResponseBody,
};
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{KEY, Nodes, by_header, in_time, request, virtual_client};

async fn stuck(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    std::future::pending().await
}

type Answer = Response<ResponseBody<Body>>;

async fn answer(builder: RedlockLayerBuilder, request: Request<Body>) -> Answer {
    let service = builder.build(by_header()).unwrap().layer(service_fn(stuck));
    in_time(service.oneshot(request)).await.unwrap()
}

async fn client() -> Redlock {
    virtual_client(&Nodes::new()).await
}

/// Makes each answer by itself, and remembers what it was asked for.
fn own_words(
    builder: RedlockLayerBuilder,
) -> (RedlockLayerBuilder, Arc<Mutex<Vec<RejectionKind>>>) {
    let kinds = Arc::<Mutex<Vec<_>>>::default();
    let asked = Arc::clone(&kinds);
    let builder = builder.reject_with(move |rejection| {
        asked.lock().unwrap().push(rejection.kind());
        let mut response = Response::new(Bytes::from_static(b"my own words"));
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    });
    (builder, kinds)
}

/// What the answer is to `request` in the own words of a layer, which were asked for once.
async fn assert_own_words(
    builder: RedlockLayerBuilder,
    request: Request<Body>,
    kind: RejectionKind,
) {
    let (builder, kinds) = own_words(builder);
    let answer = answer(builder, request).await;
    assert_eq!(*kinds.lock().unwrap(), [kind]);
    assert_own(answer, kind).await;
}

async fn assert_own(answer: Answer, kind: RejectionKind) {
    assert_eq!(answer.status(), StatusCode::IM_A_TEAPOT, "{kind:?}");
    assert!(answer.headers().is_empty(), "nothing is added: {kind:?}");
    assert_eq!(answer.extensions().get::<Rejection>().unwrap().kind(), kind);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "my own words");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_refusal_can_be_put_in_own_words() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let builder =
        || RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().wait(Wait::Never));
    let nameless = Request::new(Body::empty());
    assert_own_words(builder(), nameless, RejectionKind::Key).await;

    let lost = builder().options(AcquireOptions::new().max_hold(Duration::from_millis(200)));
    assert_own_words(lost, request(KEY), RejectionKind::Lost).await;

    let holder = redlock.acquire(format!("test:{KEY}")).await.unwrap();
    assert_own_words(builder(), request(KEY), RejectionKind::Contended).await;
    let full = builder().options(
        AcquireOptions::new()
            .wait(Wait::UpTo(Duration::from_secs(5)))
            .max_waiters_per_key(0),
    );
    assert_own_words(full, request(KEY), RejectionKind::Overloaded).await;
    drop(holder);

    let (wrong, kinds) = own_words(builder());
    let service = wrong.build(PathKey::new("order", "id")).unwrap();
    let answer = service.layer(service_fn(stuck)).oneshot(request(KEY)).await;
    assert_eq!(*kinds.lock().unwrap(), [RejectionKind::Misuse]);
    assert_own(answer.unwrap(), RejectionKind::Misuse).await;

    nodes.stop();
    assert_own_words(builder(), request(KEY), RejectionKind::Unavailable).await;
    redlock.close().await;
    assert_own_words(builder(), request(KEY), RejectionKind::Closed).await;
}

/// The program says how it answers; what a client speaks is its business then.
#[tokio::test(start_paused = true)]
async fn own_words_are_also_for_clients_of_grpc() {
    let mut grpc = Request::new(Body::empty());
    let content_type = "application/grpc".parse().unwrap();
    grpc.headers_mut().insert("content-type", content_type);
    assert_own_words(
        RedlockLayer::builder(client().await),
        grpc,
        RejectionKind::Key,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_served_is_not_put_in_other_words() {
    let (builder, kinds) = own_words(RedlockLayer::builder(client().await));
    let handler =
        service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
    let service = builder
        .build(by_header().optional())
        .unwrap()
        .layer(handler);
    for request in [request(KEY), Request::new(Body::empty())] {
        let answer = service.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert!(answer.extensions().get::<Rejection>().is_none());
    }
    assert!(kinds.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_time_to_live_out_of_range_is_told_when_the_layer_is_built() {
    let redlock = Nodes::new().client().build().await.unwrap();
    let step = Duration::from_millis(1);
    for ttl in [Duration::from_millis(100) - step, redlock.max_ttl() + step] {
        let options = AcquireOptions::new().ttl(ttl);
        let builder = RedlockLayer::builder(redlock.clone()).options(options);
        let error = builder.build(by_header()).unwrap_err();
        let (kind, field) = (error.kind(), error.field());
        assert_eq!((kind, field), (ConfigErrorKind::Misuse, "ttl"));
        let range = "not between 100ms and";
        assert!(error.to_string().contains(range), "{error}");
    }
}
