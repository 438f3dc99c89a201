//! The layer fits wherever a layer can be put, without `HandleErrorLayer`, and its type can be named.

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    extract::State,
    handler::Handler,
    routing::{any, get, post},
};
use http::{Method, Request, StatusCode};
use redlock_core::{AcquireOptions, Redlock, ResourceKey, Wait};
use redlock_tower::{
    FixedKey, HeaderKey, KeyError, PathKey, RedlockLayer, RedlockService, ResponseBody,
    ResponseFuture,
};
use tower::{ServiceBuilder, ServiceExt};
use tower_http::{timeout::TimeoutLayer, trace::TraceLayer};

use crate::behaviour::kit::{KEY, Nodes, by_header, request, virtual_client};

async fn redlock() -> Redlock {
    virtual_client(&Nodes::new()).await
}

fn named(redlock: Redlock) -> RedlockLayer<HeaderKey> {
    RedlockLayer::new(redlock, by_header().optional())
}

fn named_for_paths(redlock: Redlock) -> RedlockLayer<PathKey> {
    RedlockLayer::new(redlock, PathKey::new("order", "order_id"))
}

async fn works(app: Router) {
    assert_eq!(app.oneshot(request(KEY)).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn around_a_router_a_method_router_and_its_routes() {
    let layer = named(redlock().await);
    works(
        Router::new()
            .route("/", get(async || "ok"))
            .layer(layer.clone()),
    )
    .await;
    works(
        Router::new()
            .route("/", get(async || "ok"))
            .route_layer(layer.clone()),
    )
    .await;
    works(Router::new().route("/", get(async || "ok").layer(layer.clone()))).await;
    works(Router::new().route("/", get(Handler::layer(async || "ok", layer)))).await;
}

#[tokio::test(start_paused = true)]
async fn around_a_router_with_state() {
    let handler = async |State(number): State<u32>| number.to_string();
    let redlock = redlock().await;
    let app = Router::new()
        .route("/", get(handler))
        .route(
            "/orders/{order_id}",
            post(handler).layer(named_for_paths(redlock.clone())),
        )
        .layer(named(redlock))
        .with_state(7);
    works(app.clone()).await;
    let order = Request::post("/orders/1").body(Body::empty()).unwrap();
    assert_eq!(app.oneshot(order).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn between_other_layers() {
    let limit =
        || TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(9));
    let stack = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http())
        .layer(limit())
        .layer(named(redlock().await))
        .layer(limit());
    works(Router::new().route("/", get(async || "ok")).layer(stack)).await;
    let stack = ServiceBuilder::new()
        .layer(named(redlock().await))
        .layer(TraceLayer::new_for_http());
    works(Router::new().route("/", get(async || "ok")).layer(stack)).await;
}

#[tokio::test(start_paused = true)]
async fn two_layers_around_one_handler() {
    let redlock = redlock().await;
    let other = HeaderKey::new("other", http::HeaderName::from_static("x-key"));
    let stack = ServiceBuilder::new()
        .layer(named(redlock.clone()))
        .layer(RedlockLayer::new(redlock, other));
    works(Router::new().route("/", get(async || "ok")).layer(stack)).await;
}

#[tokio::test(start_paused = true)]
async fn with_a_closure_whose_types_are_inferred() {
    let layer = RedlockLayer::builder(redlock().await)
        .build(|request: &Request<_>| Ok(Some(ResourceKey::new("path", request.uri().path())?)))
        .unwrap();
    works(Router::new().route("/", get(async || "ok")).layer(layer)).await;
}

#[tokio::test(start_paused = true)]
async fn with_a_function() {
    fn by_path<B>(request: &Request<B>) -> Result<Option<ResourceKey>, KeyError> {
        Ok(Some(ResourceKey::new("path", request.uri().path())?))
    }
    let layer = RedlockLayer::new(redlock().await, by_path);
    works(Router::new().route("/", get(async || "ok")).layer(layer)).await;
}

/// A handler of `GET` serves `HEAD`, and one of `any` serves `OPTIONS`: neither may run beside another request.
#[tokio::test(start_paused = true)]
async fn head_and_options_wait_for_the_lock_too_unless_the_layer_names_other_methods() {
    let redlock = redlock().await;
    let _holder = redlock.acquire("fixed").await.unwrap();
    let key = || FixedKey::new("fixed".parse::<ResourceKey>().unwrap());
    let at_once = || {
        let options = AcquireOptions::new().wait(Wait::Never);
        RedlockLayer::builder(redlock.clone()).options(options)
    };
    let all = at_once().build(key()).unwrap();
    let named = at_once().only([Method::POST]).build(key()).unwrap();
    for (layer, expected) in [(all, StatusCode::CONFLICT), (named, StatusCode::OK)] {
        let app: Router = Router::new().route("/", any(async || "ok").layer(layer));
        for method in [Method::HEAD, Method::OPTIONS] {
            let request = Request::builder().method(method).body(Body::empty());
            let answer = app.clone().oneshot(request.unwrap()).await.unwrap();
            assert_eq!(answer.status(), expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_outside_ends_the_wait() {
    let redlock = redlock().await;
    let _holder = redlock.acquire(format!("test:{KEY}")).await.unwrap();
    let limit = TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(1));
    let stack = ServiceBuilder::new().layer(limit).layer(named(redlock));
    let app: Router = Router::new().route("/", get(async || "ok")).layer(stack);
    assert_eq!(app.oneshot(request(KEY)).await.unwrap().status(), 504);
}

/// A body that can be shared between threads stays one, for `BodyExt::boxed` asks for it.
#[test]
fn the_types_are_as_send_and_sync_as_what_is_inside() {
    fn send_and_sync<T: Send + Sync>() {}
    fn send<T: Send>() {}
    type Inner =
        tower::util::BoxCloneSyncService<Request<Body>, http::Response<Body>, std::io::Error>;
    send_and_sync::<RedlockLayer<HeaderKey>>();
    send_and_sync::<RedlockService<Inner, HeaderKey>>();
    send_and_sync::<ResponseBody<http_body_util::Full<bytes::Bytes>>>();
    send::<ResponseBody<Body>>();
    send::<ResponseFuture<Inner, Body>>();
}
