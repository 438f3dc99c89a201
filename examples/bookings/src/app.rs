//! The routes, each with its lock.

use std::time::Duration;

use axum::{
    Router,
    http::StatusCode,
    routing::{get, post},
};
use redlock_core::Wait;
use redlock_tower::{ConfigError, HeaderKey, InHandler, PathKey, RedlockLayer};

use crate::{
    handlers,
    service::{IDEMPOTENCY_KEY, Service},
};

/// Returns the routes of one replica.
pub fn app(service: Service) -> Result<Router, ConfigError> {
    let redlock = || service.redlock.clone();
    let room = RedlockLayer::new(redlock(), PathKey::new("room", "room").parsed::<u32>());
    let payment = RedlockLayer::new(redlock(), HeaderKey::new("payment", IDEMPOTENCY_KEY));
    // A move is for the clerk at the desk, who should not stand there for long.
    let both_rooms = RedlockLayer::builder(redlock())
        .wait(Wait::UpTo(Duration::from_secs(2)))
        .build(InHandler)?;
    Ok(Router::new()
        .route(
            "/rooms/{room}/bookings",
            post(handlers::book).route_layer(room),
        )
        .route("/payments", post(handlers::pay).route_layer(payment))
        .route("/moves", post(handlers::relocate).route_layer(both_rooms))
        .route("/bookings/{booking}", get(handlers::look))
        .route("/ready", get(handlers::ready))
        .route("/alive", get(async || StatusCode::OK))
        .with_state(service))
}
