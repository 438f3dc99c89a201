//! The answers of `watch` over HTTP, and limits: no client keeps `watch` from its nodes, or another client from an answer.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use redlock_core::NodeReport;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch::Receiver,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

use crate::{
    connection::NodeSettings,
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
        .with_state(state);
    tokio::select! {
        never = accept(listener, routes) => never,
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

async fn accept(listener: &TcpListener, routes: Router) -> Infallible {
    let mut open = Connections::default();
    let most = most();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                open.make_room(most).await;
                open.add(stream, routes.clone());
            }
            // The client has gone, or this process has no file descriptor left.
            Err(_) => {
                open.make_room(most / 2).await;
                sleep(PAUSE).await;
            }
        }
    }
}

/// The open connections, all of which end with this value.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// The oldest one first.
    handles: VecDeque<AbortHandle>,
}

impl Connections {
    /// Closes the oldest connections until there are fewer than `most`: an answer takes a moment, so the oldest one is idle.
    async fn make_room(&mut self, most: usize) {
        while self.tasks.try_join_next().is_some() {}
        self.handles.retain(|handle| !handle.is_finished());
        while self.tasks.len() >= most.max(1) {
            if let Some(oldest) = self.handles.pop_front() {
                oldest.abort();
            }
            // Its file descriptor is closed then.
            drop(self.tasks.join_next().await);
        }
    }

    fn add(&mut self, stream: TcpStream, routes: Router) {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER)
            .keep_alive(false)
            .max_buf_size(LONGEST_HEADER)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
        // A client may have gone, or sent what is no request.
        let answered = async { drop(timeout(LONGEST, connection).await) };
        self.handles.push_back(self.tasks.spawn(answered));
    }
}

/// Returns how many connections may be open: the other file descriptors are for the nodes.
fn most() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / 4).unwrap_or(MOST).clamp(1, MOST)
}

/// More probes at a time are not needed, however many machines ask.
const MOST: usize = 64;
/// How long a client may take to send the head of its request.
const HEADER: Duration = Duration::from_secs(5);
/// The longest head of a request, in bytes.
const LONGEST_HEADER: usize = 16 * 1_024;
/// How long a connection may take with its answer.
const LONGEST: Duration = Duration::from_secs(10);
/// How long no connection is accepted after an error.
const PAUSE: Duration = Duration::from_millis(50);
/// In seconds; the alerts ask for the one that ends at a second.
const BUCKETS: [f64; 14] = [
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// How often the measurements are summed up.
const EVERY: Duration = Duration::from_secs(5);
