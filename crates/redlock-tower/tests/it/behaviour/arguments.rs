//! Handlers that take one lock after the other by their arguments.

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    extract::{FromRequestParts, State},
    routing::get,
};
use http::{Request, request::Parts};
use redlock_core::{AcquireErrorKind, Redlock, ResourceKey, ResourceKeys};
use redlock_tower::{InHandler, KeyError, LockKey, Locked, RedlockLayer};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::behaviour::kit::{Nodes, in_time, virtual_client};

/// What one segment of the path names: keys with a plus between them.
struct Segment<const AT: usize>(String);

impl<const AT: usize, S: Sync> FromRequestParts<S> for Segment<AT> {
    type Rejection = ();

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ()> {
        let segment = parts.uri.path().split('/').nth(AT + 1);
        segment.map(|segment| Self(segment.to_owned())).ok_or(())
    }
}

impl<const AT: usize> LockKey for Segment<AT> {
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        let keys = self.0.split('+').map(|key| format!("test:{key}"));
        Ok(ResourceKeys::new(keys)?)
    }
}

fn app(redlock: Redlock) -> Router {
    let two = async |_first: Locked<Segment<0>>, _second: Locked<Segment<1>>| {
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    // The client is asked in the very poll in which the argument has its lock.
    let again = async |State(redlock): State<Redlock>, first: Locked<Segment<0>>| {
        let key = ResourceKey::new("test", &first.0).unwrap();
        let again = redlock.acquire(key).await;
        assert_eq!(again.unwrap_err().kind(), AcquireErrorKind::AlreadyHeld);
    };
    let layer = RedlockLayer::new(redlock.clone(), InHandler);
    Router::new()
        .route("/{first}/{second}", get(two))
        .route("/{first}", get(again))
        .route_layer(layer)
        .with_state(redlock)
}

async fn statuses<const N: usize>(paths: [&str; N]) -> [u16; N] {
    let nodes = Nodes::new();
    let app = app(virtual_client(&nodes).await);
    let began = Instant::now();
    let answers = paths.map(|path| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        app.clone().oneshot(request)
    });
    let answers = in_time(futures_util::future::join_all(answers)).await;
    assert!(began.elapsed() < Duration::from_secs(1), "one has waited");
    let mut statuses = answers.into_iter();
    let statuses = [(); N].map(|()| statuses.next().unwrap().unwrap().status().as_u16());
    nodes.have_keys(0).await;
    statuses
}

#[tokio::test(start_paused = true)]
async fn arguments_in_opposite_orders_are_told_at_once() {
    let mut statuses = statuses(["/a/b", "/b/a"]).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}

#[tokio::test(start_paused = true)]
async fn arguments_in_one_order_wait_for_each_other() {
    assert_eq!(statuses(["/a/b", "/a/b", "/b/c", "/a+b/c"]).await, [200; 4]);
}

#[tokio::test(start_paused = true)]
async fn an_argument_with_a_key_of_one_before_and_others_is_the_programs_fault() {
    assert_eq!(
        statuses(["/a/a+b", "/a+b/b", "/a/a"]).await,
        [500, 200, 200]
    );
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_asks_for_its_arguments_key_is_told_at_once() {
    assert_eq!(statuses(["/a"]).await, [200]);
}
