//! A text is the name of one resource, and says nothing of the request.

use axum::{Router, routing::post};
use redlock_core::Redlock;
use redlock_tower::RedlockLayer;

fn app(redlock: Redlock) -> Router {
    let layer = RedlockLayer::new(redlock, "order_id");
    Router::new().route("/orders/{order_id}/pay", post(async || ()).layer(layer))
}

fn main() {}
