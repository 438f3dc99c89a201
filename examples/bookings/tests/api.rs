//! The API on two replicas, without a server: the nodes are in memory, and time passes at once.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{convert::Infallible, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    http::{Request, StatusCode, header},
};
use bookings::{
    app::app,
    hotel::{Booking, Hotel, Receipt, Refused},
    service::Service,
};
use futures_util::stream;
use redlock_core::{FencingToken, MemoryNode, Redlock};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{join, time::Instant};
use tower::ServiceExt;

struct World {
    nodes: Vec<MemoryNode>,
    hotel: Hotel,
    /// A client of another replica, to hold what a request wants.
    elsewhere: Redlock,
}

impl World {
    async fn new() -> Self {
        let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
        Self {
            elsewhere: client(&nodes).await,
            hotel: Hotel::default(),
            nodes,
        }
    }

    async fn replica(&self) -> Router {
        let redlock = client(&self.nodes).await;
        app(Service::new(self.hotel.clone(), redlock)).unwrap()
    }
}

async fn client(nodes: &[MemoryNode]) -> Redlock {
    let builder = Redlock::builder().nodes(nodes.to_vec());
    builder.virtual_time().build().await.unwrap()
}

fn request(path: &str, body: &Value) -> Request<Body> {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    request.body(Body::from(body.to_string())).unwrap()
}

fn payment(key: &str, booking: u64) -> Request<Body> {
    let mut request = request("/payments", &json!({ "booking": booking }));
    let key = key.parse().unwrap();
    request.headers_mut().insert("idempotency-key", key);
    request
}

async fn ask(app: &Router, request: Request<Body>) -> (StatusCode, Vec<u8>) {
    let response = app.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), 10_000).await.unwrap();
    (status, body.to_vec())
}

async fn answer<T: DeserializeOwned>(app: &Router, request: Request<Body>) -> T {
    let (status, body) = ask(app, request).await;
    assert!(status.is_success(), "{status}");
    serde_json::from_slice(&body).unwrap()
}

async fn book(app: &Router, room: u32, guest: &str) -> (StatusCode, Vec<u8>) {
    let body = json!({ "night": "2026-11-21", "guest": guest });
    ask(app, request(&format!("/rooms/{room}/bookings"), &body)).await
}

#[tokio::test(start_paused = true)]
async fn a_room_is_booked_once_though_two_replicas_are_asked_at_once() {
    let world = World::new().await;
    let (one, other) = (world.replica().await, world.replica().await);
    let (first, second) = join!(book(&one, 7, "Ada"), book(&other, 7, "Grace"));
    let mut answers = [first.0, second.0];
    answers.sort();
    assert_eq!(answers, [StatusCode::CREATED, StatusCode::CONFLICT]);
    assert!(world.hotel.booking(1).is_some() && world.hotel.booking(2).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_room_that_is_held_elsewhere_is_waited_for_and_then_the_client_told_to_come_back() {
    let world = World::new().await;
    let app = world.replica().await;
    let held = world.elsewhere.acquire("room:7").await.unwrap();
    let began = Instant::now();
    // `007` is the room 7.
    let body = json!({ "night": "2026-11-21", "guest": "Ada" });
    let response = app.clone().oneshot(request("/rooms/007/bookings", &body));
    let response = response.await.unwrap();
    assert_eq!(response.status(), StatusCode::CONFLICT);
    assert!(response.headers().contains_key(header::RETRY_AFTER));
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    held.release().await.unwrap();
    assert_eq!(book(&app, 7, "Ada").await.0, StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn a_payment_that_is_sent_to_two_replicas_at_once_is_charged_once_and_answered_twice() {
    let world = World::new().await;
    let (one, other) = (world.replica().await, world.replica().await);
    assert_eq!(book(&one, 7, "Ada").await.0, StatusCode::CREATED);
    let (first, again): (Receipt, Receipt) = join!(
        answer(&one, payment("a-key", 1)),
        answer(&other, payment("a-key", 1))
    );
    assert_eq!(first, again);
    assert_eq!(answer::<Receipt>(&one, payment("a-key", 1)).await, first);
    assert_eq!(world.hotel.charges(), 1);
    let (status, _) = ask(&other, payment("another-key", 1)).await;
    assert_eq!(status, StatusCode::CONFLICT, "it is paid");
    let (status, _) = ask(&one, request("/payments", &json!({ "booking": 1 }))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "it has no key");
}

#[tokio::test(start_paused = true)]
async fn a_booking_is_charged_once_whatever_the_keys_of_its_payments() {
    let world = World::new().await;
    let (one, other) = (world.replica().await, world.replica().await);
    assert_eq!(book(&one, 7, "Ada").await.0, StatusCode::CREATED);
    assert_eq!(book(&one, 8, "Grace").await.0, StatusCode::CREATED);
    let (first, second) = join!(
        ask(&one, payment("a-key", 1)),
        ask(&other, payment("another-key", 1))
    );
    let (paid, refused) = (StatusCode::OK, StatusCode::CONFLICT);
    let statuses = [first.0, second.0];
    assert!(
        statuses == [paid, refused] || statuses == [refused, paid],
        "{statuses:?}"
    );
    let used = if first.0 == paid {
        "a-key"
    } else {
        "another-key"
    };
    let began = Instant::now();
    let (status, _) = ask(&one, payment(used, 2)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "it was used");
    let (status, _) = ask(&one, payment("a-third-key", 99)).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(
        began.elapsed() < Duration::from_millis(50),
        "the bank was asked"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stalls_has_a_room_for_a_while_only() {
    let world = World::new().await;
    let app = world.replica().await;
    let body = stream::pending::<Result<Bytes, Infallible>>();
    let stalls = Request::post("/rooms/7/bookings")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from_stream(body))
        .unwrap();
    let stalled = app.clone().oneshot(stalls).await.unwrap();
    assert_eq!(stalled.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(book(&app, 7, "Ada").await.0, StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn a_move_locks_both_rooms_which_its_body_names() {
    let world = World::new().await;
    let app = world.replica().await;
    assert_eq!(book(&app, 7, "Ada").await.0, StatusCode::CREATED);
    let body = json!({ "booking": 1, "from": 7, "to": 9 });
    for room in ["room:7", "room:9"] {
        let held = world.elsewhere.acquire(room).await.unwrap();
        let began = Instant::now();
        assert_eq!(
            ask(&app, request("/moves", &body)).await.0,
            StatusCode::CONFLICT
        );
        assert_eq!(began.elapsed(), Duration::from_secs(2));
        held.release().await.unwrap();
    }
    let moved: Booking = answer(&app, request("/moves", &body)).await;
    assert_eq!((moved.room, &*moved.guest), (9, "Ada"));
    assert_eq!(book(&app, 7, "Grace").await.0, StatusCode::CREATED);
    assert_eq!(book(&app, 9, "Grace").await.0, StatusCode::CONFLICT);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_comes_too_late_changes_nothing() {
    let world = World::new().await;
    let late = world.elsewhere.acquire("room:7").await.unwrap();
    let token: FencingToken = late.token();
    late.release().await.unwrap();
    let app = world.replica().await;
    assert_eq!(book(&app, 7, "Ada").await.0, StatusCode::CREATED);
    let moved = world.hotel.relocate(1, (7, 9), token);
    assert_eq!(moved.unwrap_err(), Refused::TooLate);
    assert_eq!(world.hotel.booking(1).unwrap().room, 7);
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_nothing_is_booked_and_the_replica_is_alive_and_not_ready() {
    let world = World::new().await;
    let app = world.replica().await;
    let probe = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        ask(&app, request).await.0
    };
    assert_eq!(probe("/ready").await, StatusCode::OK);
    world.nodes[..2].iter().for_each(MemoryNode::stop);
    assert_eq!(
        book(&app, 7, "Ada").await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(probe("/ready").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(probe("/alive").await, StatusCode::OK);
    assert_eq!(probe("/bookings/1").await, StatusCode::NOT_FOUND);
    world.nodes[..2].iter().for_each(MemoryNode::start);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(probe("/ready").await, StatusCode::OK);
    assert_eq!(book(&app, 7, "Ada").await.0, StatusCode::CREATED);
}
