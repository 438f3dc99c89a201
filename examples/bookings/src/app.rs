//! The routes, each with its lock.

use std::time::Duration;

use axum::{
    Router,
    http::StatusCode,
    routing::{get, post},
};
use redlock_core::{AcquireOptions, Wait};
use redlock_tower::{ConfigError, HeaderKey, InHandler, PathKey, RedlockLayer};

use crate::{
    handlers,
    service::{IDEMPOTENCY_KEY, Service},
};

/// Returns the routes of one replica.
pub fn app(service: Service) -> Result<Router, ConfigError> {
    let redlock = || service.redlock.clone();
    let layer = || {
        RedlockLayer::builder(redlock()).options(AcquireOptions::new().max_hold(REQUEST_MAY_TAKE))
    };
    let room = layer().build(PathKey::new("room", "room").parsed::<u32>())?;
    let payment = layer().build(HeaderKey::new("payment", IDEMPOTENCY_KEY))?;
    // A clerk at the desk waits for the answer to a move, so it must come soon.
    let both_rooms = layer()
        .options(AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(2))))
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

/// The time for which a request may hold a lock: a client that stalls while it sends its body keeps others out for no longer.
pub(crate) const REQUEST_MAY_TAKE: Duration = Duration::from_secs(15);
