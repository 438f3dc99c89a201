//! A closure says whether the request needs a lock at all, so its key is an `Option`.

use axum::{Router, body::Body, http::Request, routing::post};
use redlock_core::{InvalidKey, Redlock, ResourceKey};
use redlock_tower::RedlockLayer;

fn app(redlock: Redlock) -> Router {
    let layer = RedlockLayer::new(redlock, |request: &Request<Body>| -> Result<ResourceKey, InvalidKey> {
        ResourceKey::new("path", request.uri().path())
    });
    Router::new().route("/pay", post(async || ())).layer(layer)
}

fn main() {}
