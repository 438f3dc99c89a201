//! What a real run tells Prometheus, and what a dashboard and alerts may ask for.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{collections::BTreeSet, convert::Infallible, env, fs, io, time::Duration};

use axum::{Router, body::Body, extract::FromRequestParts, routing::post};
use http::{HeaderName, Request, StatusCode, request::Parts};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use redlock_core::{AcquireOptions, Redlock, ResourceKey, ResourceKeys, Wait};
use redlock_cron::{SingletonJob, SingletonScheduler, tokio_cron_scheduler::JobScheduler};
use redlock_tests::{Nodes, builder, eventually, voting, within};
use redlock_tower::{
    GenericLayer, HeaderKey, InHandler, KeyError, LockKey, Locked, LockedRejection, LossPolicy,
    RedlockLayer,
};
use tower::{Layer, Service, service_fn};

const TTL: Duration = Duration::from_millis(1_500);
const SOON: Duration = Duration::from_secs(15);
const NEXT_TICK: &str = "redlock_job_next_tick_timestamp_seconds";
const SECRET: &str = "s3cret-4711";

/// The value of the first series with this name and all of these labels, if there is one.
fn found(text: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let line = lines.find(|line| {
        let rest = line.strip_prefix(name);
        let rest = rest.filter(|rest| rest.starts_with(['{', ' ']));
        rest.is_some_and(|rest| labels.iter().all(|label| rest.contains(label)))
    });
    line?.rsplit(' ').next()?.parse().ok()
}

fn value(text: &str, name: &str, labels: &[&str]) -> f64 {
    found(text, name, labels).unwrap_or_else(|| panic!("{name} {labels:?} in\n{text}"))
}

/// The names of a line's labels, without those that the exporter adds; no value of ours has a quotation mark.
fn labels(line: &str) -> BTreeSet<&str> {
    let inner = line
        .split_once('{')
        .and_then(|(_, rest)| rest.rsplit_once('}'));
    let (inner, _) = inner.unwrap_or_default();
    let pairs = inner.split_terminator('"').step_by(2);
    let names = pairs.map(|name| name.trim_start_matches(',').trim_end_matches('='));
    names
        .filter(|name| !["le", "quantile"].contains(name))
        .collect()
}

async fn reaches(prometheus: &PrometheusHandle, name: &str, labels: &[&str], least: f64) {
    let what = format!("{name} {labels:?} of {least}");
    let now = || found(&prometheus.render(), name, labels);
    let has_come = |value: &Option<f64>| value.is_some_and(|value| value >= least);
    eventually(&what, SOON, now, has_come).await;
}

/// The locks: one that is held, one caller that waits, and one that gives up.
async fn leases(redlock: &Redlock, other: &Redlock, prometheus: &PrometheusHandle) {
    let key = || ResourceKey::new("order", SECRET).unwrap();
    let guard = redlock.acquire(key()).await.unwrap();
    let order = ["namespace=\"redlock\"", "lock=\"order\""];
    let of = |result: &'static str| [order[0], order[1], result];
    let text = prometheus.render();
    assert_eq!(value(&text, "redlock_held", &order), 1.0);
    assert_eq!(value(&text, "redlock_waiters", &order), 0.0);
    assert_eq!(
        value(&text, "redlock_acquire_total", &of("result=\"acquired\"")),
        1.0
    );
    assert_eq!(
        value(&text, "redlock_lost_total", &of("reason=\"expired\"")),
        0.0
    );

    let refused = other.try_acquire(key()).await.unwrap_err();
    assert!(refused.holder().is_some(), "{refused}");
    let text = prometheus.render();
    assert_eq!(
        value(&text, "redlock_acquire_total", &of("result=\"contended\"")),
        1.0
    );

    let waits = AcquireOptions::new().wait(Wait::UpTo(SOON));
    let mut waiter = Box::pin(other.acquire_with(key(), waits));
    assert!(tokio::time::timeout(TTL / 10, &mut waiter).await.is_err());
    let of_keys = |keys| [order[0], order[1], keys];
    let waiters = || {
        let text = prometheus.render();
        let of = |keys| found(&text, "redlock_waiters", &of_keys(keys)).unwrap_or(0.0);
        [of("keys=\"one\""), of("keys=\"several\"")]
    };
    assert_eq!(waiters(), [1.0, 0.0]);
    let both = [key(), ResourceKey::new("order", "another").unwrap()];
    let waits = AcquireOptions::new().wait(Wait::UpTo(SOON));
    let mut of_both = Box::pin(redlock.acquire_all_with(ResourceKeys::new(both).unwrap(), waits));
    assert!(tokio::time::timeout(TTL / 10, &mut of_both).await.is_err());
    assert_eq!(waiters(), [1.0, 1.0]);
    drop(of_both);
    let retried = reaches(prometheus, "redlock_acquire_retries_total", &order, 1.0);
    tokio::select! {
        () = retried => {}
        won = &mut waiter => panic!("somebody has it: {won:?}"),
    }
    drop(waiter);
    let text = prometheus.render();
    assert_eq!(waiters(), [0.0, 0.0]);
    assert_eq!(
        value(&text, "redlock_acquire_total", &of("result=\"abandoned\"")),
        2.0
    );

    reaches(
        prometheus,
        "redlock_extend_total",
        &of("result=\"confirmed\""),
        1.0,
    )
    .await;
    guard.release().await.unwrap();
    let text = prometheus.render();
    assert_eq!(value(&text, "redlock_held", &order), 0.0);
    assert_eq!(value(&text, "redlock_release_total", &order), 1.0);
    assert_eq!(
        value(&text, "redlock_hold_duration_seconds_count", &order),
        1.0
    );
    assert!(value(&text, "redlock_hold_duration_seconds_sum", &order) > 0.4);
    let took = "redlock_acquire_duration_seconds_count";
    assert_eq!(value(&text, took, &of_keys("keys=\"one\"")), 3.0);
    assert_eq!(value(&text, took, &of_keys("keys=\"several\"")), 1.0);
    let waited = "redlock_wait_duration_seconds_count";
    assert!(value(&text, waited, &of_keys("keys=\"one\"")) >= 2.0);
}

/// An election: a term, its end, and a candidate that never leads.
async fn terms(redlock: &Redlock, other: &Redlock, prometheus: &PrometheusHandle) {
    let importer = ["namespace=\"redlock\"", "lock=\"importer\""];
    let told = || {
        let text = prometheus.render();
        ["redlock_leader", "redlock_terms_total"].map(|name| value(&text, name, &importer))
    };
    let election = redlock.election("importer").build().unwrap();
    assert_eq!(told(), [0.0, 0.0]);
    let term = election.lead_with(Wait::UpTo(SOON)).await.unwrap();
    assert_eq!(told(), [1.0, 1.0]);
    let other = other.election("importer").build().unwrap();
    assert!(other.lead_with(Wait::Never).await.is_err());
    assert_eq!(told(), [1.0, 1.0]);
    // A follower waits for as long as another leads, and that is no contention.
    let mut follows = Box::pin(other.lead_with(Wait::UpTo(SOON)));
    assert!(tokio::time::timeout(TTL / 10, &mut follows).await.is_err());
    let text = prometheus.render();
    assert_eq!(value(&text, "redlock_waiters", &importer), 0.0);
    drop(follows);
    let text = prometheus.render();
    for time in ["acquire", "wait"] {
        let count = format!("redlock_{time}_duration_seconds_count");
        assert_eq!(found(&text, &count, &importer).unwrap_or(0.0), 0.0);
    }
    term.resign().await.unwrap();
    assert_eq!(told(), [0.0, 1.0]);
    // And the metrics of any lease.
    let text = prometheus.render();
    assert_eq!(value(&text, "redlock_release_total", &importer), 1.0);
}

/// The layer: a request that is served, one without a key, and one that meets another.
async fn requests(redlock: &Redlock, prometheus: &PrometheusHandle) {
    let key = HeaderKey::new("account", HeaderName::from_static("x-account"));
    let layer = RedlockLayer::new(redlock.clone(), key);
    let mut app: Router = Router::new().route("/", post(async || "paid").route_layer(layer));
    let mut ask = async |account: Option<&str>| {
        let request = Request::post("/");
        let request = match account {
            Some(account) => request.header("x-account", account),
            None => request,
        };
        let request = request.body(Body::empty()).unwrap();
        let answer: Result<_, Infallible> = app.call(request).await;
        answer.unwrap().status()
    };
    assert_eq!(ask(Some(SECRET)).await, StatusCode::OK);
    assert_eq!(ask(None).await, StatusCode::BAD_REQUEST);
    let text = prometheus.render();
    let name = "redlock_http_requests_total";
    let of = |lock, outcome| ["namespace=\"redlock\"", lock, outcome];
    let served = of("lock=\"account\"", "outcome=\"served\"");
    assert_eq!(value(&text, name, &served), 1.0);
    let without_a_key = of("lock=\"none\"", "outcome=\"key\"");
    assert_eq!(value(&text, name, &without_a_key), 1.0);
    let account = ["lock=\"account\"", "result=\"acquired\""];
    assert_eq!(value(&text, "redlock_acquire_total", &account), 1.0);
}

/// What a request of a layer whose handlers take the locks was locked by.
struct Account(String);

impl LockKey for Account {
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        Ok(ResourceKey::new("account", &self.0)?.into())
    }

    fn options(&self) -> AcquireOptions {
        AcquireOptions::new().wait(Wait::Never)
    }
}

impl<S: Sync> FromRequestParts<S> for Account {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.uri.path().to_owned()))
    }
}

/// The layer around handlers that take the lock, or none, or answer by themselves when it is another's.
async fn requests_of_handlers(redlock: &Redlock, other: &Redlock, prometheus: &PrometheusHandle) {
    let by_itself = async |account: Result<Locked<Account>, LockedRejection<Infallible>>| {
        let is_free = account.is_ok();
        if is_free { "paid" } else { "later" }
    };
    let layer = RedlockLayer::new(redlock.clone(), InHandler);
    let mut app: Router = Router::new()
        .route("/none", post(async || "nothing to lock"))
        .route("/locked", post(async |_: Locked<Account>| "paid"))
        .route("/itself", post(by_itself))
        .route_layer(layer);
    let counted = || {
        let text = prometheus.render();
        let of = |(lock, outcome)| {
            let labels = [
                &*format!("lock=\"{lock}\""),
                &*format!("outcome=\"{outcome}\""),
            ];
            found(&text, "redlock_http_requests_total", &labels).unwrap_or(0.0)
        };
        [
            ("none", "unlocked"),
            ("account", "served"),
            ("account", "contended"),
            ("account", "misuse"),
        ]
        .map(of)
    };
    let mut grown = async |path: &str| {
        let before = counted();
        let request = Request::post(path).body(Body::empty()).unwrap();
        let answer: Result<_, Infallible> = app.call(request).await;
        drop(answer.unwrap());
        let after = counted();
        [0, 1, 2, 3].map(|outcome| after[outcome] - before[outcome])
    };
    assert_eq!(grown("/none").await, [1.0, 0.0, 0.0, 0.0]);
    for path in ["/locked", "/itself"] {
        assert_eq!(grown(path).await, [0.0, 1.0, 0.0, 0.0], "{path}");
        let key = ResourceKey::new("account", path).unwrap();
        let guard = other.acquire(key).await.unwrap();
        assert_eq!(grown(path).await, [0.0, 0.0, 1.0, 0.0], "{path}");
        guard.release().await.unwrap();
    }

    // Requests that are not HTTP's are not counted as such.
    let before = counted();
    let key = |path: &&'static str| Ok(Some(ResourceKey::new("account", path)?));
    let options = AcquireOptions::new().wait(Wait::Never);
    let layer = GenericLayer::with_options(redlock.clone(), options, LossPolicy::Abort, key);
    let mut service = layer
        .unwrap()
        .layer(service_fn(async |_| Ok::<_, Infallible>(())));
    service.call("/generic").await.unwrap();
    let key = ResourceKey::new("account", "/generic").unwrap();
    let guard = other.acquire(key).await.unwrap();
    service.call("/generic").await.unwrap_err();
    guard.release().await.unwrap();
    assert_eq!(counted(), before);
}

/// A job that runs each second.
async fn jobs(redlock: &Redlock, prometheus: &PrometheusHandle) {
    let scheduler =
        SingletonScheduler::builder(redlock.clone(), JobScheduler::new().await.unwrap())
            .namespace("books")
            .replica("pod-7");
    let scheduler = scheduler.build().unwrap();
    let second = Duration::from_secs(1);
    let job = SingletonJob::every("close-day", second, async |_run| Ok::<_, io::Error>(()));
    scheduler.add(job).await.unwrap();
    // Before anything has happened, so that the first failure is a change.
    let text = prometheus.render();
    for outcome in ["failed", "lost", "no_quorum", "draining"] {
        let labels = [
            "namespace=\"redlock\"",
            "job_namespace=\"books\"",
            "job_name=\"close-day\"",
            &format!("outcome=\"{outcome}\""),
        ];
        assert_eq!(value(&text, "redlock_job_runs_total", &labels), 0.0);
    }
    let next = |text: &str, job: &str| {
        let labels = [
            "namespace=\"redlock\"",
            "job_namespace=\"books\"",
            &format!("job_name=\"{job}\""),
        ];
        value(text, NEXT_TICK, &labels)
    };
    let first = next(&text, "close-day");
    assert!(first > 1.7e9 && first % 1.0 == 0.0, "{first}");
    scheduler.start().await.unwrap();
    let close_day = ["job_name=\"close-day\""];
    reaches(prometheus, NEXT_TICK, &close_day, first + 1.0).await;
    let job = ["job_name=\"close-day\"", "outcome=\"ok\""];
    reaches(prometheus, "redlock_job_runs_total", &job, 1.0).await;
    let text = prometheus.render();
    assert!(value(&text, "redlock_job_run_duration_seconds_count", &job[..1]) >= 1.0);
    assert!(value(&text, "redlock_job_lag_seconds_count", &job[..1]) >= 1.0);
    let last = value(
        &text,
        "redlock_job_last_success_timestamp_seconds",
        &job[..1],
    );
    assert!(last > 1.7e9, "{last}");
    let nothing = async |_run| Ok::<_, io::Error>(());
    let gone = SingletonJob::every("gone", second, nothing);
    scheduler.add(gone).await.unwrap();
    assert!(next(&prometheus.render(), "gone") > 1.7e9);
    let removed = scheduler.remove("gone", SOON).await.unwrap();
    assert!(removed.is_clean(), "{removed:?}");
    let text = prometheus.render();
    assert!(next(&text, "gone").is_nan() && !next(&text, "close-day").is_nan());
    let hour = Duration::from_secs(3_600);
    let audit = SingletonJob::every("audit", hour, nothing).expect_success_within(second);
    scheduler.add(audit).await.unwrap();
    let overdue = "redlock_job_overdue";
    let audit = ["job_namespace=\"books\"", "job_name=\"audit\""];
    assert_eq!(value(&prometheus.render(), overdue, &audit), 0.0);
    reaches(prometheus, overdue, &audit, 1.0).await;
    let removed = scheduler.remove("audit", SOON).await.unwrap();
    assert!(removed.is_clean(), "{removed:?}");
    assert_eq!(value(&prometheus.render(), overdue, &audit), 0.0);
    let report = scheduler.shutdown(SOON).await;
    assert!(report.unfinished().is_empty(), "{report:?}");
    assert!(next(&prometheus.render(), "close-day").is_nan());
}

/// The nodes: all well, one that forgot, and none.
async fn outage(redlock: &Redlock, nodes: &mut Nodes, prometheus: &PrometheusHandle) {
    let addresses: Vec<String> = nodes
        .iter()
        .map(|node| node.address().to_string())
        .collect();
    let node = |node: usize| format!("node=\"{}\"", addresses[node]);
    let (first, second) = (node(0), node(1));
    reaches(prometheus, "redlock_quorum_margin", &[], 1.0).await;
    let text = prometheus.render();
    assert_eq!(value(&text, "redlock_nodes", &[]), 3.0);
    assert_eq!(value(&text, "redlock_quorum", &[]), 2.0);
    assert_eq!(value(&text, "redlock_node_up", &[&first]), 1.0);
    assert_eq!(value(&text, "redlock_node_votes", &[&first]), 1.0);
    assert!(value(&text, "redlock_clock_offset_seconds", &[]).abs() < 0.5);
    let of_node = value(&text, "redlock_node_clock_offset_seconds", &[&first]);
    assert!(of_node.abs() < 0.5, "{of_node}");
    let answered = [&*first, "result=\"ok\""];
    assert!(value(&text, "redlock_node_requests_total", &answered) >= 1.0);
    let seconds = "redlock_node_request_duration_seconds";
    assert!(value(&text, &format!("{seconds}_count"), &[&first]) >= 1.0);

    nodes.ask(0, &["FLUSHALL"]);
    let remaining = "redlock_node_quarantine_remaining_seconds";
    reaches(prometheus, remaining, &[&first], 0.1).await;
    let text = prometheus.render();
    assert_eq!(value(&text, "redlock_node_votes", &[&first]), 0.0);
    assert_eq!(value(&text, "redlock_node_votes", &[&second]), 1.0);
    assert_eq!(value(&text, "redlock_quorum_margin", &[]), 0.0);
    voting(redlock, 3, SOON).await;

    let guard = redlock
        .acquire(ResourceKey::new("order", SECRET).unwrap())
        .await
        .unwrap();
    nodes.freeze(0..3);
    within("the loss", SOON, guard.lease().lost()).await;
    let lost = ["lock=\"order\"", "reason=\"expired\""];
    reaches(prometheus, "redlock_lost_total", &lost, 1.0).await;
    let text = prometheus.render();
    assert_eq!(
        value(&text, "redlock_endangered_total", &["lock=\"order\""]),
        1.0
    );
    assert_eq!(value(&text, "redlock_held", &["lock=\"order\""]), 0.0);
    drop(guard);
    nodes.thaw(0..3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_run_is_told_to_prometheus() {
    let prometheus = PrometheusBuilder::new()
        .set_buckets(&[0.001, 0.01, 0.1, 1.0, 10.0])
        .unwrap()
        .install_recorder()
        .unwrap();
    let mut nodes = Nodes::start(3);
    let client = async || {
        let client = builder(nodes.urls(), TTL)
            .max_ttl(TTL)
            .build()
            .await
            .unwrap();
        voting(&client, 3, SOON).await;
        client
    };
    let redlock = client().await;
    let other = client().await;
    leases(&redlock, &other, &prometheus).await;
    terms(&redlock, &other, &prometheus).await;
    requests(&redlock, &prometheus).await;
    requests_of_handlers(&redlock, &other, &prometheus).await;
    drop(other);
    jobs(&redlock, &prometheus).await;
    // A job that has a next tick when all is over.
    let later = SingletonScheduler::standalone(redlock.clone()).namespace("later");
    let later = later.build().unwrap();
    let hour = Duration::from_secs(3_600);
    let job = SingletonJob::every("later", hour, async |_run| Ok::<_, io::Error>(()));
    later.add(job).await.unwrap();
    outage(&redlock, &mut nodes, &prometheus).await;

    let text = prometheus.render();
    // `cargo xtask docker` reads it, to ask it the questions of the dashboard.
    if let Some(path) = env::var_os("REDLOCK_EXPOSITION") {
        fs::write(path, &text).unwrap();
    }
    assert!(!text.contains(SECRET), "{text}");
    let all = [
        redlock_core::metrics::ALL,
        redlock_cron::metrics::ALL,
        redlock_tower::metrics::ALL,
    ];
    for metric in all.concat() {
        let help = format!("# HELP {} {}", metric.name, metric.help);
        assert!(text.contains(&help), "{help}\n{text}");
    }
    // What is told has a name in the tables, and its labels.
    for line in text.lines().filter(|line| line.starts_with("redlock_")) {
        let name = line.split(['{', ' ']).next().unwrap();
        let ends = ["_bucket", "_sum", "_count"];
        let base = ends.iter().find_map(|end| name.strip_suffix(end));
        let base = base.unwrap_or(name);
        let all = all.concat();
        let metric = all.iter().find(|metric| metric.name == base);
        let metric = metric.unwrap_or_else(|| panic!("{line}"));
        let promised: BTreeSet<&str> = metric.labels.iter().copied().collect();
        assert_eq!(labels(line), promised, "{line}");
    }
    drop(later);
    let of_later = ["job_name=\"later\""];
    assert!(value(&prometheus.render(), NEXT_TICK, &of_later).is_nan());
}
