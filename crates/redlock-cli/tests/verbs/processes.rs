//! What processes measure and no node knows: the callers that wait, and the time of a job's next tick.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
    sync::OnceLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{Router, routing::get};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use redlock_core::{LockGuard, Redlock, ResourceKey};
use redlock_cron::{BoxError, SingletonJob, SingletonScheduler, inspect};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::kit::{MAX_TTL, Nodes, at_terminal, screen};

/// Nodes, and a service in this process that tells what it measures.
struct Service {
    nodes: Nodes,
    client: Redlock,
    /// Where it tells that.
    process: String,
    prometheus: PrometheusHandle,
    namespace: &'static str,
}

impl Service {
    /// Starts it in a namespace of its own, because all tests are measured together.
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    async fn start(namespace: &'static str) -> Self {
        static MEASURES: OnceLock<PrometheusHandle> = OnceLock::new();
        let install = || PrometheusBuilder::new().install_recorder().unwrap();
        let prometheus = MEASURES.get_or_init(install).clone();
        let nodes = Nodes::start(3);
        let blessed = nodes.run(&["bless", "--yes", "--namespace", namespace]);
        assert_eq!(blessed.code, 0, "{blessed:?}");
        let builder = Redlock::builder().nodes(nodes.addresses());
        let builder = builder.namespace(namespace).ttl(MAX_TTL).max_ttl(MAX_TTL);
        let client = builder.build().await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let process = listener.local_addr().unwrap().to_string();
        let tells = prometheus.clone();
        let routes = Router::new().route("/metrics", get(async move || tells.render()));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self {
            nodes,
            client,
            process,
            prometheus,
            namespace,
        }
    }

    /// Holds an order for which two more callers wait.
    async fn contended(&self, order: u32) -> (LockGuard, JoinSet<()>) {
        let key = ResourceKey::new("order", order).unwrap();
        let guard = self.client.acquire(key.clone()).await.unwrap();
        let mut waiting = JoinSet::new();
        for _ in 0..2 {
            let (client, key) = (self.client.clone(), key.clone());
            waiting.spawn(async move { drop(client.acquire(key).await) });
        }
        let line = format!(
            "redlock_waiters{{namespace=\"{}\",lock=\"order\",keys=\"one\"}} 2",
            self.namespace
        );
        while !self.prometheus.render().contains(&line) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        (guard, waiting)
    }

    fn with<'a>(&'a self, verb: &[&'a str], urls: &'a str) -> Vec<&'a str> {
        let own = ["--namespace", self.namespace, "--metrics", urls];
        [verb, &own].concat()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_tells_how_many_callers_wait_for_locks_of_a_class_and_where() {
    let service = Service::start("status-of-waiting").await;
    let (guard, mut waiting) = service.contended(7).await;
    // One that is not there, and one that is named twice.
    let process = &service.process;
    let urls = format!("http://{process}/metrics,http://{process},http://127.0.0.1:1");
    let status = |more: &[&str]| {
        let verb = [&["status", "order:7"], more].concat();
        service.nodes.run(&service.with(&verb, &urls))
    };
    let done = status(&[]);
    let words = done.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "held by",
        &*format!("callers that wait: 2 for locks of class order at {process}"),
        "127.0.0.1:1 does not name its waiting callers",
    ] {
        assert!(words.contains(said), "{said}: {done:?}");
    }
    assert_eq!(done.code, 0, "{done:?}");
    let json: Value = serde_json::from_str(&status(&["--json"]).out).unwrap();
    let told = &json["waiting"];
    assert_eq!(told["callers"], 2, "{json}");
    assert_eq!(told["processes"][0]["lock"], "order", "{json}");
    assert_eq!(told["processes"][0]["process"], **process, "{json}");
    assert_eq!(told["silent"][0]["process"], "127.0.0.1:1", "{json}");

    waiting.shutdown().await;
    guard.release().await.unwrap();
    let free = status(&[]);
    assert_eq!(free.code, 1, "{free:?}");
    assert!(
        free.out.contains("no process knows of a caller that waits"),
        "{free:?}"
    );
    let unasked = ["status", "order:7", "--namespace", service.namespace];
    let unasked = service.nodes.run(&[&unasked[..], &["--json"]].concat());
    assert!(!unasked.out.contains("waiting"), "{unasked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_shows_who_waits_and_when_the_next_tick_of_a_job_is() {
    let service = Service::start("top-of-waiting").await;
    let jobs = SingletonScheduler::standalone(service.client.clone()).namespace("billing");
    let jobs = jobs.build().unwrap();
    let hour = Duration::from_secs(3_600);
    let job = SingletonJob::every("day", hour, async |_run| Ok::<(), BoxError>(()));
    jobs.add(job).await.unwrap();
    jobs.start().await.unwrap();
    let is_known = async || {
        let job = inspect(&service.client, "billing", "day").await;
        job.unwrap().registration().is_some()
    };
    while !is_known().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (guard, mut waiting) = service.contended(7).await;

    let url = format!("http://{}", service.process);
    let top = service.with(&["top", "--json", "--every", "200ms"], &url);
    let mut top = service.nodes.command(&top);
    let mut top = top.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut samples = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let sample = samples.find(|sample| sample["jobs"][0]["job"].is_string());
    drop(top.kill());
    drop(top.wait());
    let sample = sample.unwrap();
    let told = &sample["processes"]["waiting"][0];
    assert_eq!(
        (&told["lock"], &told["callers"]),
        (&"order".into(), &2.into())
    );
    let next = sample["jobs"][0]["next_tick_ms"].as_f64().unwrap();
    let left = next - now();
    assert!(left > -1_000.0 && left <= 3_600_000.0, "{left}: {sample}");

    // As a user sees it.
    let line = format!(
        "stty rows 30 cols 80; \"$REDLOCK\" {}",
        service.with(&["top"], &url).join(" ")
    );
    let mut top = at_terminal(&line, &service.nodes);
    let mut top = top.env("TERM", "xterm").spawn().unwrap();
    let said = screen(&mut top, "billing/day");
    top.stdin.take().unwrap().write_all(b"q").unwrap();
    assert!(top.wait().unwrap().success());
    // In the last minutes of an hour, it is a matter of seconds.
    let unit = if left > 120_000.0 { "min" } else { "s" };
    for words in ["waiting", "callers", &service.process, "next", unit] {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
    waiting.shutdown().await;
    drop(guard);
}

#[tokio::test]
async fn a_process_that_cannot_be_asked_is_refused_without_its_secret() {
    let nodes = Nodes::start(1);
    for verb in [&["status", "order:7"][..], &["top", "--json"]] {
        for url in ["https://web-1", "web-1:9000", "http://me:hunter2@web-1"] {
            let urls = format!("http://web-1,{url}");
            let done = nodes.run(&[verb, &["--metrics", &urls]].concat());
            assert_eq!(done.code, 2, "{done:?}");
            assert!(done.err.contains("--metrics: URL 2"), "{done:?}");
            assert!(!format!("{done:?}").contains("hunter2"), "{done:?}");
        }
    }
}

#[tokio::test]
async fn a_process_that_hangs_or_speaks_no_http_is_told_so() {
    let nodes = Nodes::blessed(1).await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let hangs = format!("http://{}", silent.local_addr().unwrap());
    // A server of another kind.
    let other = nodes.urls()[0].replace("redis://", "http://");
    let urls = format!("{hangs},{other}");
    let done = nodes.run(&["status", "order:7", "--metrics", &urls, "--json"]);
    assert_eq!(done.code, 1, "{done:?}");
    let json: Value = serde_json::from_str(&done.out).unwrap();
    let silent = json["waiting"]["silent"].to_string();
    assert!(silent.contains("no answer within 2 s"), "{silent}");
    assert!(silent.contains("not one of HTTP"), "{silent}");
}

#[expect(clippy::disallowed_methods, reason = "beside a tick of the wall clock")]
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs_f64() * 1_000.0
}
