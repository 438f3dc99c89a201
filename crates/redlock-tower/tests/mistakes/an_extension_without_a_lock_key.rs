//! A value in the extensions must say which resource it names.

use axum::{Router, routing::post};
use redlock_core::Redlock;
use redlock_tower::{ExtensionKey, RedlockLayer};

#[derive(Clone)]
struct User;

fn app(redlock: Redlock) -> Router {
    let layer = RedlockLayer::new(redlock, ExtensionKey::<User>::new());
    Router::new().route("/pay", post(async || ())).layer(layer)
}

fn main() {}
