//! The answers of `watch` over HTTP.

use std::{convert::Infallible, time::Duration};

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use redlock_core::NodeReport;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch::Receiver, time::sleep};

use crate::{
    connection::NodeSettings,
    http,
    nodes::{have_quorum, standing, votes},
    ready::find,
};

/// The state of the answers: the newest reports of the nodes, and the measurements since the beginning.
#[derive(Clone)]
struct HttpState {
    reports: Receiver<Vec<NodeReport>>,
    settings: NodeSettings,
    metrics: PrometheusHandle,
}

/// Begins to measure; clients that are built later are part of it.
///
/// # Errors
///
/// Something else in this process measures already.
pub(super) fn measure() -> Result<PrometheusHandle, BuildError> {
    let builder = PrometheusBuilder::new().set_buckets(&BUCKETS)?;
    builder.install_recorder()
}

/// Answers each connection once, for ever.
pub(super) async fn serve(
    listener: &TcpListener,
    reports: Receiver<Vec<NodeReport>>,
    settings: NodeSettings,
    metrics: PrometheusHandle,
    console: Router,
) -> Infallible {
    let upkeep = metrics.clone();
    let state = HttpState {
        reports,
        settings,
        metrics,
    };
    let routes = Router::new()
        .route("/", get(all))
        .route("/metrics", get(metrics_text))
        .route("/ready/{node}", get(ready))
        .with_state(state)
        // As a service, it is asked for the prefix with a slash at its end, too.
        .nest_service("/console", console);
    tokio::select! {
        never = http::serve(listener, routes) => never,
        never = keep_small(&upkeep) => never,
    }
}

/// 200 if a node votes, 503 if it does not, 404 if there is no such node.
async fn ready(State(state): State<HttpState>, Path(node): Path<String>) -> Response {
    let Ok(place) = find(&state.settings, &node) else {
        return (StatusCode::NOT_FOUND, "no such node\n").into_response();
    };
    match state.reports.borrow().get(place) {
        Some(report) => json(votes(report), &standing(report)),
        None => (StatusCode::SERVICE_UNAVAILABLE, "not seen yet\n").into_response(),
    }
}

/// Returns what the client has measured, for Prometheus.
async fn metrics_text(State(state): State<HttpState>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(CONTENT_TYPE, kind)], state.metrics.render()).into_response()
}

/// 200 if a majority votes, else 503.
async fn all(State(state): State<HttpState>) -> Response {
    let reports = state.reports.borrow();
    let nodes: Vec<_> = reports.iter().map(standing).collect();
    json(have_quorum(&reports), &json!(nodes))
}

fn json(is_ready: bool, value: &Value) -> Response {
    let status = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let kind = [(CONTENT_TYPE, "application/json")];
    (status, kind, format!("{value}\n")).into_response()
}

/// Sums up the measurements now and then, so that their memory does not grow while no request asks for them.
async fn keep_small(metrics: &PrometheusHandle) -> Infallible {
    loop {
        sleep(EVERY).await;
        metrics.run_upkeep();
    }
}

/// In seconds; the alerts ask for the one that ends at a second.
const BUCKETS: [f64; 14] = [
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// How often the measurements are summed up.
const EVERY: Duration = Duration::from_secs(5);
