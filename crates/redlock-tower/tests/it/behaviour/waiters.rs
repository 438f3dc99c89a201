//! How many requests may wait.

use std::{convert::Infallible, pin::Pin};

use axum::body::Body;
use futures_util::poll;
use http::{Request, Response};
use redlock_core::{AcquireOptions, LockGuard, Redlock};
use redlock_tower::{RedlockLayer, RedlockLayerBuilder, Rejection, RejectionKind};
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{KEY, LONG, Nodes, by_header, in_time, request, virtual_client};

/// The kind of the refusal, if it is one.
type Outcome = Option<RejectionKind>;
type Asking = Pin<Box<dyn Future<Output = Outcome>>>;

/// A request for `key` to a layer of its own, as every connection has one.
fn ask(builder: &RedlockLayerBuilder, key: &str) -> Asking {
    let layer = builder
        .clone()
        .options(AcquireOptions::new().wait(LONG))
        .build(by_header())
        .unwrap();
    let handler = async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty()));
    let response = layer.layer(service_fn(handler)).oneshot(request(key));
    Box::pin(async {
        let response = response.await.unwrap();
        response.extensions().get().map(Rejection::kind)
    })
}

/// Such a request that waits.
async fn waiting(builder: &RedlockLayerBuilder, key: &str) -> Asking {
    let mut asking = ask(builder, key);
    assert!(poll!(asking.as_mut()).is_pending(), "it waits");
    asking
}

/// A request that must not wait.
async fn refused(builder: &RedlockLayerBuilder, key: &str) {
    let outcome = poll!(ask(builder, key));
    assert_eq!(
        outcome,
        std::task::Poll::Ready(Some(RejectionKind::Overloaded))
    );
}

async fn hold(redlock: &Redlock, key: &str) -> LockGuard {
    redlock.try_acquire(format!("test:{key}")).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn with_no_waiters_per_key_a_request_never_waits_for_another_of_this_replica() {
    let redlock = virtual_client(&Nodes::new()).await;
    let builder = RedlockLayer::builder(redlock.clone())
        .options(AcquireOptions::new().max_waiters_per_key(0));
    let holder = hold(&redlock, KEY).await;
    refused(&builder, KEY).await;
    assert_eq!(ask(&builder, "other").await, None);
    drop(holder);
    assert_eq!(ask(&builder, KEY).await, None);
}

#[tokio::test(start_paused = true)]
async fn with_no_waiters_per_key_a_request_still_waits_for_another_replica() {
    let nodes = Nodes::new();
    let (redlock, replica) = (virtual_client(&nodes).await, virtual_client(&nodes).await);
    let builder =
        RedlockLayer::builder(redlock).options(AcquireOptions::new().max_waiters_per_key(0));
    let holder = hold(&replica, KEY).await;
    let waits = waiting(&builder, KEY).await;
    drop(holder);
    assert_eq!(in_time(waits).await, None);
}

#[tokio::test(start_paused = true)]
async fn with_one_waiter_per_key_the_second_is_refused_at_once() {
    let redlock = virtual_client(&Nodes::new()).await;
    let builder = RedlockLayer::builder(redlock.clone())
        .options(AcquireOptions::new().max_waiters_per_key(1));
    let holder = hold(&redlock, KEY).await;
    let first = waiting(&builder, KEY).await;
    refused(&builder, KEY).await;

    // Another key has a queue of its own.
    let other_holder = hold(&redlock, "other").await;
    let other = waiting(&builder, "other").await;
    drop(other_holder);
    assert_eq!(in_time(other).await, None);

    // A waiter that goes away makes room, and so does one that is served.
    drop(first);
    let second = waiting(&builder, KEY).await;
    refused(&builder, KEY).await;
    drop(holder);
    assert_eq!(in_time(second).await, None);
    let _holder = hold(&redlock, KEY).await;
    let _waits = waiting(&builder, KEY).await;
}

#[tokio::test(start_paused = true)]
async fn each_layer_has_its_bound_and_counts_all_who_wait() {
    let redlock = virtual_client(&Nodes::new()).await;
    let strict = RedlockLayer::builder(redlock.clone())
        .options(AcquireOptions::new().max_waiters_per_key(1));
    let lax = RedlockLayer::builder(redlock.clone())
        .options(AcquireOptions::new().max_waiters_per_key(2));
    let holder = hold(&redlock, KEY).await;
    let first = waiting(&lax, KEY).await;
    refused(&strict, KEY).await;
    let second = waiting(&lax, KEY).await;
    refused(&lax, KEY).await;
    drop(holder);
    assert_eq!(
        in_time(async { (first.await, second.await) }).await,
        (None, None)
    );
}
