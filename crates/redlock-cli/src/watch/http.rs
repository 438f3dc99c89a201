//! The answers of `watch` over HTTP.

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde::Serialize;

use super::{Seen, exposition::Exposition};
use crate::{
    connection::Settings,
    ready::find,
    standing::{Standing, votes},
};

#[derive(Clone)]
struct Shared {
    seen: Seen,
    settings: Settings,
    exposition: Exposition,
}

/// Returns the routes and their answers.
pub(super) fn routes(seen: Seen, settings: Settings, exposition: Exposition) -> Router {
    let shared = Shared {
        seen,
        settings,
        exposition,
    };
    Router::new()
        .route("/", get(all))
        .route("/metrics", get(metrics))
        .route("/ready/{node}", get(ready))
        .with_state(shared)
}

/// 200 if a node votes, 503 if it does not, 404 if there is no such node.
async fn ready(State(shared): State<Shared>, Path(node): Path<String>) -> Response {
    let Ok(place) = find(&shared.settings, &node) else {
        return (StatusCode::NOT_FOUND, "no such node\n").into_response();
    };
    match shared.seen.get().get(place) {
        Some(report) => json(is(votes(report)), &Standing::of(report)),
        None => (StatusCode::SERVICE_UNAVAILABLE, "not seen yet\n").into_response(),
    }
}

/// Returns what the client has measured, for Prometheus.
async fn metrics(State(shared): State<Shared>) -> Response {
    let text = shared.exposition.text();
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// 200 if a majority votes, else 503.
async fn all(State(shared): State<Shared>) -> Response {
    let reports = shared.seen.get();
    let count = reports.iter().filter(|report| votes(report)).count();
    let nodes: Vec<_> = reports.iter().map(Standing::of).collect();
    json(is(count >= shared.settings.majority()), &nodes)
}

fn is(ready: bool) -> StatusCode {
    if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => (
            status,
            [(header::CONTENT_TYPE, "application/json")],
            text + "\n",
        )
            .into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
