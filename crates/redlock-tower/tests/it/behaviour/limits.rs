//! How long a request may hold its lock.

use std::{convert::Infallible, time::Duration};

use axum::{Router, body::Body, routing::get};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::BodyExt;
use redlock_core::{AcquireOptions, LossReason, Redlock};
use redlock_tower::{RedlockLayer, RedlockLayerBuilder, Rejection, RejectionKind};
use tokio::{io::AsyncWriteExt, time::Instant};
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{
    HEADER, KEY, LONG, Nodes, Server, by_header, in_time, is_free, request, virtual_client,
};

const MAX_HOLD: Duration = Duration::from_millis(400);

fn limited(redlock: &Redlock) -> RedlockLayerBuilder {
    RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().max_hold(MAX_HOLD))
}

async fn stuck(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn a_stuck_handler_is_answered_for_when_its_hold_ends() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let service = limited(&redlock).build(by_header()).unwrap();
    let service = service.layer(service_fn(stuck));
    let start = Instant::now();
    let response = in_time(service.oneshot(request(KEY))).await.unwrap();
    let held = start.elapsed();
    assert!(held >= MAX_HOLD && held < MAX_HOLD + SLACK, "{held:?}");
    assert_eq!(response.status(), 503);
    let rejection = response.extensions().get::<Rejection>().unwrap();
    assert_eq!(rejection.kind(), RejectionKind::Lost);
    assert!(
        rejection
            .to_string()
            .contains(&LossReason::MaxHold.to_string())
    );
    assert!(is_free(&redlock, KEY).await);
    nodes.have_keys(0).await;
}

/// Returns a body that gives one frame after the other, for as long as it is read.
fn endless() -> Body {
    let chunk = Bytes::from_static(&[b'x'; 16 * 1024]);
    Body::from_stream(
        stream::repeat(chunk)
            .map(Ok::<_, Infallible>)
            .then(async |chunk| {
                tokio::task::yield_now().await;
                chunk
            }),
    )
}

#[tokio::test(start_paused = true)]
async fn a_body_is_cut_off_when_its_hold_ends() {
    let redlock = virtual_client(&Nodes::new()).await;
    let handler =
        service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(endless())));
    let service = limited(&redlock).build(by_header()).unwrap().layer(handler);
    let mut body = service.oneshot(request(KEY)).await.unwrap().into_body();
    assert!(body.frame().await.unwrap().is_ok());
    tokio::time::sleep(MAX_HOLD).await;
    let error = body.frame().await.unwrap().unwrap_err();
    let rejection = error.downcast_ref::<Rejection>().unwrap();
    assert_eq!(rejection.kind(), RejectionKind::Lost);
    assert!(is_free(&redlock, KEY).await);
}

/// A client that takes its time over an answer: the server waits for it to read, and not for the body.
#[tokio::test]
async fn a_client_that_does_not_read_keeps_others_out_no_longer_than_the_hold() {
    let redlock = Nodes::new().client().build().await.unwrap();
    // The nodes have the key for as long as it was renewed.
    let builder =
        limited(&redlock).options(AcquireOptions::new().ttl(Duration::from_secs(1)).wait(LONG));
    let layer = builder.build(by_header()).unwrap();
    let app = Router::new()
        .route("/endless", get(async || endless()))
        .route("/", get(async || "next"))
        .layer(layer);
    let server = Server::start(app).await;

    let mut idle = server.raw().await;
    let ask = format!("GET /endless HTTP/1.1\r\nhost: test\r\n{HEADER}: {KEY}\r\n\r\n");
    idle.write_all(ask.as_bytes()).await.unwrap();
    idle.readable().await.unwrap();
    assert!(!is_free(&redlock, KEY).await);
    let next = server.answer(request(KEY)).await;
    assert_eq!(next.status, 200);
    drop(idle);
}

const SLACK: Duration = Duration::from_millis(10);
