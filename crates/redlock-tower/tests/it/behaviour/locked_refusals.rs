//! The answer to a refusal of `Locked`, which the layer, layers in between and the handler make together.

use axum::{
    Router,
    body::Body,
    extract::{Path, rejection::PathRejection},
    middleware,
    response::IntoResponse,
    routing::get,
};
use http::{HeaderValue, Response, StatusCode, header};
use redlock_tower::{InHandler, Locked, LockedRejection, RedlockLayer};

use crate::behaviour::{
    kit::{Nodes, again_in, locked_as_423, virtual_client},
    locked::{Order, ask, to},
};

#[tokio::test(start_paused = true)]
async fn what_layers_in_between_add_to_a_refusal_is_kept() {
    let redlock = virtual_client(&Nodes::new()).await;
    let lock = RedlockLayer::builder(redlock.clone()).reject_with(locked_as_423);
    let lock = lock.build(InHandler).unwrap();
    let number = async |mut response: Response<Body>| {
        let headers = response.headers_mut();
        headers.insert("x-request-id", HeaderValue::from_static("7"));
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("3600"));
        response
    };
    let handler = async |order: Locked<Path<Order>>| order.id.clone();
    let route = get(handler).route_layer(middleware::map_response(number));
    let app = Router::new().route("/orders/{id}", route.route_layer(lock));
    let served = ask(&app, to("/orders/7")).await;
    assert_eq!(served.headers()["x-request-id"], "7");
    drop(served);
    let _holder = redlock.acquire("test:7").await.unwrap();
    let refused = ask(&app, to("/orders/7")).await;
    assert_eq!(refused.status(), 423);
    assert_eq!(refused.headers()["x-request-id"], "7");
    // What tells of the refusal itself is the layer's.
    assert!((1..=70).contains(&again_in(refused.headers())));
    let body = refused.headers()[header::CONTENT_TYPE].clone();
    assert_eq!(body, "application/problem+json");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_to_which_the_handler_gives_a_status_is_its_own_answer() {
    let redlock = virtual_client(&Nodes::new()).await;
    let lock = RedlockLayer::builder(redlock.clone()).reject_with(locked_as_423);
    let lock = lock.build(InHandler).unwrap();
    let handler =
        async |order: Result<Locked<Path<Order>>, LockedRejection<PathRejection>>| match order {
            Ok(order) => order.id.clone().into_response(),
            Err(refused) => (StatusCode::ACCEPTED, [("x-queued", "1")], refused).into_response(),
        };
    let app = Router::new().route("/orders/{id}", get(handler).route_layer(lock));
    let _holder = redlock.acquire("test:7").await.unwrap();
    let answer = ask(&app, to("/orders/7")).await;
    assert_eq!(answer.status(), 202);
    assert_eq!(answer.headers()["x-queued"], "1");
}
