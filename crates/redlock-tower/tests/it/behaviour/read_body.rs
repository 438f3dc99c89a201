//! A request's body is read before the lock is taken.

use std::{convert::Infallible, io, time::Duration};

use axum::{Router, body::Body, routing::post};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, StatusCode};
use redlock_core::{AcquireOptions, Redlock, Wait};
use redlock_tower::{ReadBodyLayer, RedlockLayer, Rejection, RejectionKind, read_to_end};
use tower::ServiceExt;

use crate::behaviour::kit::{HEADER, KEY, Nodes, by_header, is_free, virtual_client};

const LIMIT: usize = 10;

fn app(redlock: Redlock, reads_before: bool) -> Router {
    let options = AcquireOptions::new().wait(Wait::Never);
    let lock = RedlockLayer::builder(redlock).options(options);
    let locked = post(async |text: String| text).route_layer(lock.build(by_header()).unwrap());
    let route = match reads_before {
        true => locked.route_layer(ReadBodyLayer::new(LIMIT)),
        false => locked,
    };
    Router::new().route("/", route)
}

fn request(body: Body) -> Request<Body> {
    Request::post("/").header(HEADER, KEY).body(body).unwrap()
}

/// A body of which the client sends the first part only.
fn stalled() -> Body {
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"some"))]);
    Body::from_stream(first.chain(stream::pending()))
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_slowly_does_not_hold_the_lock() {
    for reads_before in [false, true] {
        let redlock = virtual_client(&Nodes::new()).await;
        let app = app(redlock.clone(), reads_before);
        let mut slow = Box::pin(app.clone().oneshot(request(stalled())));
        let minute = Duration::from_secs(60);
        assert!(tokio::time::timeout(minute, &mut slow).await.is_err());
        assert_eq!(is_free(&redlock, KEY).await, reads_before);
        let quick = app.oneshot(request("quick".into())).await.unwrap();
        let quick = read_to_end(quick).await.unwrap();
        assert_eq!(quick.status() == StatusCode::OK, reads_before);
        drop(slow);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_answered_with_413_and_takes_no_lock() {
    let redlock = virtual_client(&Nodes::new()).await;
    let _holder = redlock.acquire(format!("test:{KEY}")).await.unwrap();
    let app = app(redlock, true);
    let parts = || stream::iter([Ok::<_, Infallible>("eleven "), Ok("bytes")]);
    for large in [Body::from("eleven bytes"), Body::from_stream(parts())] {
        let answer = app.clone().oneshot(request(large)).await.unwrap();
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let rejection = answer.extensions().get::<Rejection>().unwrap();
        assert_eq!(rejection.kind(), RejectionKind::Key);
    }
    let whole = app.oneshot(request(Body::from("ten bytes."))).await;
    assert_eq!(whole.unwrap().status(), StatusCode::CONFLICT);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_is_answered_with_400_and_takes_no_lock() {
    let redlock = virtual_client(&Nodes::new()).await;
    let _holder = redlock.acquire(format!("test:{KEY}")).await.unwrap();
    let parts = stream::iter([Ok("some"), Err(io::Error::other("gone"))]);
    let broken = request(Body::from_stream(parts));
    let answer = app(redlock, true).oneshot(broken).await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn the_handler_gets_the_body_that_was_read_before_its_lock() {
    let app = app(virtual_client(&Nodes::new()).await, true);
    let parts = stream::iter([Ok::<_, Infallible>("in "), Ok("parts")]);
    for (body, expected) in [(Body::from_stream(parts), "in parts"), (Body::empty(), "")] {
        let answer = app.clone().oneshot(request(body)).await.unwrap();
        assert_eq!(read_to_end(answer).await.unwrap().body(), expected);
    }
}
