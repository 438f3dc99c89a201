//! A request that asks twice for the same lock, and one that asks for two.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{FromRequestParts, State},
    routing::get,
};
use futures_util::{StreamExt, stream};
use http::{HeaderName, Request, Response, request::Parts};
use http_body_util::BodyExt;
use redlock_core::{AcquireOptions, Redlock, ResourceKey, ResourceKeys};
use redlock_tower::{
    HeaderKey, Hold, InHandler, KeyError, LockKey, Locked, LossPolicy, OwnedLease, RedlockLayer,
    Rejection, RejectionKind, RequestLease,
};
use tokio::{sync::mpsc, time::Instant};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::behaviour::kit::{
    HEADER, KEY, Nodes, by_header, detach, in_time, is_free, request, virtual_client,
};

/// The header that `by_header` locks, as an argument of a handler that is locked too.
pub(crate) struct Named(String);

impl<S: Sync> FromRequestParts<S> for Named {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.headers[HEADER].to_str().unwrap().to_owned()))
    }
}

impl LockKey for Named {
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        Ok(ResourceKey::new("test", &self.0)?.into())
    }
}

/// What a handler behind two layers sees: its leases, from the inside to the outside.
async fn leases_of<L>(layers: L) -> Vec<RequestLease>
where
    L: Layer<Looking, Service: tower::Service<Request<Body>, Response: Send, Error = Infallible>>,
{
    let (told, mut leases) = mpsc::unbounded_channel();
    let service = layers.layer(looking(told));
    in_time(service.oneshot(request(KEY))).await.unwrap();
    leases.recv().await.unwrap()
}

type Looking = tower::util::BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

fn looking(told: mpsc::UnboundedSender<Vec<RequestLease>>) -> Looking {
    Looking::new(service_fn(move |request: Request<Body>| {
        let innermost = request.extensions().get::<RequestLease>();
        let all = std::iter::successors(innermost, |lease| lease.outer());
        let all = all.inspect(|lease| assert!(lease.is_held()));
        told.send(all.cloned().collect()).unwrap();
        async { Ok(Response::new(Body::empty())) }
    }))
}

#[tokio::test(start_paused = true)]
async fn two_layers_with_the_same_key_are_one_lock() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let layer = RedlockLayer::new(redlock.clone(), by_header());
    let start = Instant::now();
    let leases = leases_of(ServiceBuilder::new().layer(layer.clone()).layer(layer)).await;
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "it waited for itself"
    );
    let [inner, outer] = &leases[..] else {
        panic!("{leases:?}")
    };
    assert_eq!(inner.token(), outer.token());
    assert!(is_free(&redlock, KEY).await);
    nodes.have_keys(0).await;
}

#[tokio::test(start_paused = true)]
async fn different_keys_and_different_namespaces_are_two_locks() {
    let nodes = Arc::new(Nodes::new());
    let redlock = virtual_client(&nodes).await;
    let elsewhere = nodes.client().virtual_time().namespace("elsewhere");
    let elsewhere = elsewhere.build().await.unwrap();
    let other_key = HeaderKey::new("other", HeaderName::from_static(HEADER));
    let outer = RedlockLayer::new(redlock.clone(), by_header());
    let cases = [
        (outer.clone(), 1),
        (RedlockLayer::new(redlock, other_key), 2),
        (RedlockLayer::new(elsewhere, by_header()), 2),
    ];
    for (middle, locks) in cases {
        let seen = Arc::clone(&nodes);
        let handler = service_fn(move |_: Request<Body>| {
            let nodes = Arc::clone(&seen);
            async move {
                nodes.have_keys(locks).await;
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        });
        // The inner one finds the outer one's lock past the one in the middle.
        let stack = ServiceBuilder::new();
        let stack = stack
            .layer(outer.clone())
            .layer(middle)
            .layer(outer.clone());
        let response = in_time(stack.service(handler).oneshot(request(KEY))).await;
        assert_eq!(response.unwrap().status(), 200);
        nodes.have_keys(0).await;
    }
}

async fn ask(app: Router) -> (u16, String) {
    let start = Instant::now();
    let response = in_time(app.oneshot(request(KEY))).await.unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "it waited for itself"
    );
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_extractor_uses_the_lock_of_the_layer() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let handler =
        async |lease: RequestLease, State(redlock): State<Redlock>, named: Locked<Named>| {
            assert_eq!(named.lease().token(), lease.token());
            assert!(named.lease().outer().is_some());
            drop(named);
            assert!(!is_free(&redlock, KEY).await, "the layer holds it");
            "done"
        };
    let app = Router::new()
        .route("/", get(handler))
        .layer(RedlockLayer::new(redlock.clone(), InHandler))
        .layer(RedlockLayer::new(redlock.clone(), by_header()))
        .with_state(redlock.clone());
    assert_eq!(ask(app).await, (200, "done".to_owned()));
    assert!(is_free(&redlock, KEY).await);
    nodes.have_keys(0).await;
}

#[tokio::test(start_paused = true)]
async fn two_extractors_in_one_handler_share_a_lock_until_the_request_is_over() {
    let redlock = virtual_client(&Nodes::new()).await;
    let handler = async |State(redlock): State<Redlock>, a: Locked<Named>, b: Locked<Named>| {
        assert_eq!(a.lease().token(), b.lease().token());
        assert!(!is_free(&redlock, KEY).await);
        drop(a);
        assert!(!is_free(&redlock, KEY).await);
        assert!(b.lease().is_held());
    };
    let layer = RedlockLayer::new(redlock.clone(), InHandler);
    let app = Router::new().route("/", get(handler).route_layer(layer));
    let app = app.with_state(redlock.clone());
    assert_eq!(ask(app).await.0, 200);
    assert!(is_free(&redlock, KEY).await);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_ends_the_inner_request_though_the_outer_goes_on() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let outer = RedlockLayer::builder(redlock.clone()).on_lost(LossPolicy::Signal);
    let stack = ServiceBuilder::new()
        .layer(outer.build(by_header()).unwrap())
        .layer(RedlockLayer::new(redlock, by_header()));
    let stuck = service_fn(async |_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, Infallible>>().await
    });
    let response = stack.service(stuck).oneshot(request(KEY));
    let trouble = async {
        nodes.have_keys(1).await;
        nodes.drop_locks();
    };
    let (response, ()) = in_time(async { tokio::join!(response, trouble) }).await;
    let response = response.unwrap();
    assert_eq!(response.status(), 503);
    let rejection = response.extensions().get::<Rejection>().unwrap();
    assert_eq!(rejection.kind(), RejectionKind::Lost);
}

/// What is between the two layers takes longer than the lock lasts.
// Shows: T2.7.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_lost_before_it_is_used_again_lets_nothing_through() {
    let redlock = virtual_client(&Nodes::new()).await;
    let hold = Duration::from_millis(300);
    let layer = || RedlockLayer::builder(redlock.clone()).on_lost(LossPolicy::Signal);
    let outer = layer()
        .options(AcquireOptions::new().max_hold(hold))
        .build(by_header())
        .unwrap();
    let layers = [
        RedlockLayer::new(redlock.clone(), by_header()),
        // It would let work go on that has begun, and this has not.
        layer().build(by_header()).unwrap(),
    ];
    for inner in layers {
        let handler = inner.layer(service_fn(async |_: Request<Body>| {
            if true {
                panic!("nothing holds the lock");
            }
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }));
        let slow = service_fn(move |request: Request<Body>| {
            let handler = handler.clone();
            async move {
                tokio::time::sleep(2 * hold).await;
                handler.oneshot(request).await
            }
        });
        let response = in_time(outer.clone().layer(slow).oneshot(request(KEY))).await;
        assert_eq!(response.unwrap().status(), 503);
    }
}

#[tokio::test(start_paused = true)]
async fn an_inner_body_is_not_failed_by_an_outer_layer_that_holds_for_less_long() {
    let redlock = virtual_client(&Nodes::new()).await;
    let outer = RedlockLayer::builder(redlock.clone()).hold(Hold::Response);
    let stack = ServiceBuilder::new()
        .layer(outer.build(by_header()).unwrap())
        .layer(RedlockLayer::new(redlock.clone(), by_header()));
    let streaming = service_fn(async |_: Request<Body>| {
        let frames = stream::iter(["a", "b"]).then(async |frame| {
            tokio::time::sleep(Duration::from_secs(30)).await;
            Ok::<_, Infallible>(frame)
        });
        Ok::<_, Infallible>(Response::new(Body::from_stream(frames)))
    });
    let response = stack
        .service(streaming)
        .oneshot(request(KEY))
        .await
        .unwrap();
    assert!(
        is_free(&redlock, KEY).await,
        "as the outer layer was asked to"
    );
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "ab");
}

/// A handler cannot know that its layer holds what it asks the client for.
#[tokio::test(start_paused = true)]
async fn a_handler_that_acquires_what_its_request_holds_is_told_at_once() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let key = format!("test:{KEY}");
    let body_key = key.clone();
    let handler = async move |State(redlock): State<Redlock>| {
        let refused = redlock.acquire(&*key).await.unwrap_err();
        let body = stream::once(async move {
            let refused = redlock.acquire(&*body_key).await.unwrap_err();
            Ok::<_, Infallible>(format!("{:?}", refused.kind()))
        });
        (format!("{:?}", refused.kind()), body)
    };
    let handler = async |state: State<Redlock>| {
        let (head, body) = handler(state).await;
        ([("x-refused", head)], Body::from_stream(body))
    };
    let app = Router::new()
        .route("/", get(handler))
        .route_layer(RedlockLayer::new(redlock.clone(), by_header()))
        .with_state(redlock.clone());
    let start = Instant::now();
    let response = in_time(app.oneshot(request(KEY))).await.unwrap();
    assert_eq!(response.headers()["x-refused"], "AlreadyHeld");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "AlreadyHeld");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(is_free(&redlock, KEY).await);
}

/// As behind one layer: after the head, a loss ends only the work that has the lock.
#[tokio::test(start_paused = true)]
async fn a_loss_does_not_end_the_body_behind_two_layers_whose_lock_was_taken_out() {
    let redlock = virtual_client(&Nodes::new()).await;
    let handler = async |lock: OwnedLease| {
        detach(lock.run(std::future::pending::<()>()));
        Body::from_stream(stream::iter(["a", "b"]).then(async |frame| {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok::<_, Infallible>(frame)
        }))
    };
    let hold = Duration::from_secs(3);
    let lock =
        || RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().max_hold(hold));
    let lock = || lock().build(by_header()).unwrap();
    let handler = get(handler).route_layer(lock()).route_layer(lock());
    let app: Router = Router::new().route("/", handler);
    let response = in_time(app.oneshot(request(KEY))).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "ab");
}
