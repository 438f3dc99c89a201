//! A request that carries a lease which is over, or which ends while the request goes on.

use std::{
    convert::Infallible,
    future::pending,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    middleware::{Next, from_fn},
    response::Response,
    routing::{MethodRouter, get},
};
use futures_util::{FutureExt, stream};
use http::Extensions;
use http_body_util::BodyExt;
use redlock_core::{AcquireOptions, LossReason, Redlock, Wait};
use redlock_tower::{
    InHandler, Locked, LossPolicy, OwnedLease, RedlockLayer, RedlockLayerBuilder, RequestLease,
};
use tokio::sync::{mpsc, oneshot};
use tower::ServiceExt;

use crate::behaviour::{
    kit::{KEY, Nodes, by_header, detach, in_time, is_free, request, virtual_client},
    reuse::Named,
};

/// Two clients of the same nodes: that of the layers, and another.
async fn two_clients() -> (Redlock, Redlock) {
    let nodes = Nodes::new();
    (virtual_client(&nodes).await, virtual_client(&nodes).await)
}

async fn acquire(redlock: &Redlock) -> redlock_core::LockGuard {
    redlock.acquire(format!("test:{KEY}")).await.unwrap()
}

fn impatient(redlock: &Redlock) -> RedlockLayerBuilder {
    RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().wait(Wait::Never))
}

fn at_root(handler: MethodRouter) -> Router {
    Router::new().route("/", handler)
}

async fn status(app: &Router, request: Request) -> u16 {
    let response = in_time(app.clone().oneshot(request)).await.unwrap();
    response.status().as_u16()
}

/// A request with everything that an earlier one has carried, as one that is sent again.
fn again(earlier: &Extensions) -> Request {
    let mut again = request(KEY);
    again.extensions_mut().extend(earlier.clone());
    again
}

/// Two apps that lock the same key, by a layer and by an argument, and show what their last request has carried.
fn apps(layer: impl Fn() -> RedlockLayerBuilder) -> ([Router; 2], Arc<Mutex<Extensions>>) {
    let shown = Arc::new(Mutex::new(Extensions::new()));
    let show = |lease: &RequestLease, extensions: &mut Extensions| {
        assert!(lease.is_held());
        extensions.insert(lease.clone());
    };
    let seen = Arc::clone(&shown);
    let by_layer = get(async move |lease: RequestLease, request: Request| {
        let mut seen = seen.lock().unwrap();
        *seen = request.extensions().clone();
        show(&lease, &mut seen);
    });
    let seen = Arc::clone(&shown);
    let by_argument = get(async move |named: Locked<Named>, request: Request| {
        let mut seen = seen.lock().unwrap();
        *seen = request.extensions().clone();
        show(named.lease(), &mut seen);
    });
    let apps = [
        by_layer.route_layer(layer().build(by_header()).unwrap()),
        by_argument.route_layer(layer().build(InHandler).unwrap()),
    ];
    (apps.map(at_root), shown)
}

// Shows: T2.7.
#[tokio::test(start_paused = true)]
async fn a_lease_of_a_request_that_is_over_lets_no_other_request_through() {
    for on_lost in [LossPolicy::Abort, LossPolicy::Signal] {
        let (redlock, other) = two_clients().await;
        let (apps, seen) = apps(|| impatient(&redlock).on_lost(on_lost));
        for app in apps {
            assert_eq!(status(&app, request(KEY)).await, 200);
            let stale = seen.lock().unwrap().clone();
            let theirs = acquire(&other).await;
            assert_eq!(status(&app, again(&stale)).await, 409, "{on_lost:?}");
            theirs.release().await.unwrap();
            // And once it is free, the request has a lease of its own.
            assert_eq!(status(&app, again(&stale)).await, 200);
            let token = |seen: &Extensions| seen.get::<RequestLease>().unwrap().token();
            assert!(token(&seen.lock().unwrap()) > token(&stale));
        }
    }
}

/// Sent again for good, it would be refused for good.
#[tokio::test(start_paused = true)]
async fn a_lease_that_a_request_has_lost_is_no_loss_of_the_next_one() {
    let nodes = Arc::new(Nodes::new());
    let redlock = virtual_client(&nodes).await;
    let shown = Arc::new(Mutex::new(None));
    let (seen, forgetful) = (Arc::clone(&shown), Arc::clone(&nodes));
    // The first request loses its lease, and goes on.
    let handler = async move |lease: RequestLease, request: Request| {
        let is_first = seen.lock().unwrap().is_none();
        if is_first {
            *seen.lock().unwrap() = Some(request.extensions().clone());
            forgetful.drop_locks();
            assert_ne!(in_time(lease.lost()).await, LossReason::Released);
        }
    };
    let lock = impatient(&redlock).on_lost(LossPolicy::Signal);
    let app = at_root(get(handler).route_layer(lock.build(by_header()).unwrap()));
    assert_eq!(status(&app, request(KEY)).await, 200);
    let stale = shown.lock().unwrap().clone().unwrap();
    assert_eq!(status(&app, again(&stale)).await, 200);
}

/// A middleware that lets the inside go on in a task of its own, after a second.
async fn detached(request: Request, next: Next) -> Response {
    let task = detach(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        next.run(request).await
    });
    task.await.unwrap()
}

// Shows: T2.7.
#[tokio::test(start_paused = true)]
async fn a_handler_that_begins_after_the_end_of_its_request_waits_for_a_lock_of_its_own() {
    let (redlock, other) = two_clients().await;
    let (told, mut served) = mpsc::unbounded_channel();
    let handler = async move |lease: RequestLease| told.send(lease.is_held()).unwrap();
    let lock = || RedlockLayer::new(redlock.clone(), by_header());
    let handler = get(handler).route_layer(lock());
    let app = at_root(handler.route_layer(from_fn(detached)).route_layer(lock()));
    {
        let mut response = pin!(app.oneshot(request(KEY)));
        let soon = tokio::time::sleep(Duration::from_millis(500));
        tokio::select! {
            _ = &mut response => panic!("it takes a second"),
            () = soon => {}
        }
        // The client hangs up.
    }
    let theirs = acquire(&other).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(served.recv().now_or_never(), None, "another has the key");
    theirs.release().await.unwrap();
    assert_eq!(in_time(served.recv()).await, Some(true));
}

// Shows: T2.7.
#[tokio::test(start_paused = true)]
async fn a_layer_behind_a_release_takes_the_lock_again() {
    let (redlock, other) = two_clients().await;
    let release = async |lock: OwnedLease, request: Request, next: Next| -> Response {
        lock.release().await.unwrap();
        next.run(request).await
    };
    let others = other.clone();
    let handler = async move |lease: RequestLease| {
        assert!(lease.is_held());
        assert!(!is_free(&others, KEY).await);
    };
    let lock = || impatient(&redlock).build(by_header()).unwrap();
    let handler = get(handler).route_layer(lock());
    let app = at_root(handler.route_layer(from_fn(release)).route_layer(lock()));
    assert_eq!(status(&app, request(KEY)).await, 200);
    assert!(is_free(&other, KEY).await);
}

// Shows: T2.8.
#[tokio::test(start_paused = true)]
async fn a_handler_that_outlives_its_request_ends_with_the_lock() {
    let (redlock, other) = two_clients().await;
    let (told, mut begun) = mpsc::unbounded_channel();
    let handler = async move |_: RequestLease| {
        // Dropped with the handler.
        let (inside, over) = oneshot::channel::<()>();
        told.send(over).unwrap();
        pending::<()>().await;
        drop(inside);
    };
    let lock = || RedlockLayer::new(redlock.clone(), by_header());
    let handler = get(handler).route_layer(lock());
    let app = at_root(handler.route_layer(from_fn(detached)).route_layer(lock()));
    let over = {
        let mut response = pin!(app.oneshot(request(KEY)));
        tokio::select! {
            _ = &mut response => panic!("it never ends"),
            over = begun.recv() => over.unwrap(),
        }
        // The client hangs up.
    };
    assert!(in_time(over).await.is_err(), "the handler is dropped");
    assert!(is_free(&other, KEY).await);
}

// Shows: T2.8.
#[tokio::test(start_paused = true)]
async fn a_handler_ends_with_a_lock_that_was_taken_out_before_it() {
    let (redlock, _) = two_clients().await;
    let take = async |lock: OwnedLease, request: Request, next: Next| -> Response {
        detach(lock.run(tokio::time::sleep(Duration::from_secs(1))));
        next.run(request).await
    };
    let lock = || impatient(&redlock).build(by_header()).unwrap();
    let handler = get(async || pending::<()>().await).route_layer(lock());
    let app = at_root(handler.route_layer(from_fn(take)).route_layer(lock()));
    assert_eq!(status(&app, request(KEY)).await, 503);
}

#[tokio::test(start_paused = true)]
async fn a_handler_behind_two_layers_goes_on_without_the_lock_that_it_has_released() {
    let (redlock, other) = two_clients().await;
    let handler = async move |lock: OwnedLease| {
        lock.release().await.unwrap();
        assert!(is_free(&other, KEY).await);
        tokio::time::sleep(Duration::from_secs(15)).await;
    };
    let lock = || impatient(&redlock).build(by_header()).unwrap();
    let app = at_root(get(handler).route_layer(lock()).route_layer(lock()));
    assert_eq!(status(&app, request(KEY)).await, 200);
}

// Shows: T2.8.
#[tokio::test(start_paused = true)]
async fn a_body_that_is_read_after_the_end_of_its_request_ends_with_the_lock() {
    let (redlock, other) = two_clients().await;
    let (told, mut read) = mpsc::unbounded_channel();
    let read_later = move |request: Request, next: Next| {
        let told = told.clone();
        async move {
            let body = next.run(request).await.into_body();
            detach(async move { told.send(body.collect().await.is_err()).unwrap() });
        }
    };
    let handler = async || Body::from_stream(stream::pending::<Result<&str, Infallible>>());
    let lock = || impatient(&redlock).build(by_header()).unwrap();
    let handler = get(handler).route_layer(lock());
    let app = at_root(handler.route_layer(from_fn(read_later)).route_layer(lock()));
    assert_eq!(status(&app, request(KEY)).await, 200);
    assert_eq!(in_time(read.recv()).await, Some(true));
    assert!(is_free(&other, KEY).await);
}
