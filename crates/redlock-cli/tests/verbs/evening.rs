//! An operator's evening: five nodes, an application under a lock, and a node that dies and forgets.

use std::{
    fs,
    process::{Child, Command},
    time::{Duration, Instant},
};

use redlock_core::Redlock;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::kit::{Done, Examined, Nodes, Relay, eventually, run};

/// So long that what starting programs takes on a busy machine is little beside a tenth of it, of which a quarantine takes
/// the half.
const MAX_TTL: Duration = Duration::from_secs(60);

/// The command on these nodes.
fn command(nodes: &Nodes, arguments: &[&str]) -> Command {
    let mut command = nodes.command(arguments);
    command.env("REDLOCK_MAX_TTL", "60s");
    command
}

fn said(nodes: &Nodes, arguments: &[&str]) -> Done {
    run(&mut command(nodes, arguments))
}

fn json(nodes: &Nodes, arguments: &[&str]) -> Value {
    let done = said(nodes, &[arguments, &["--json"]].concat());
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

/// Five nodes for which an operator vouches.
fn sandbox() -> Nodes {
    let nodes = Nodes::start(5);
    said(&nodes, &["bless", "--yes"]).ended(0);
    nodes
}

fn is_clean(nodes: &Nodes) {
    let doctor = said(nodes, &["doctor", "--strict"]);
    doctor.told(0, "5 of 5 nodes vote");
}

/// An application that holds a lock until it is asked to end.
fn application(nodes: &Nodes) -> (Child, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let script = "echo up >\"$UP\"; trap 'exit 0' TERM; while :; do sleep 0.05; done";
    let mut app = command(nodes, &["run", "report", "--", "sh", "-c", script]);
    let app = app.env("UP", &up).spawn().unwrap();
    eventually("it runs", || fs::exists(&up).unwrap_or(false));
    (app, folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "what is measured is shown to be short"
)]
async fn an_evening_with_a_node_that_dies_and_forgets() {
    let mut nodes = sandbox();
    is_clean(&nodes);
    let (mut app, _folder) = application(&nodes);

    let stopped = Instant::now();
    nodes[0].restart().unwrap();
    let dead = nodes[0].address().to_string();
    // The application has looked at it too, so its quarantine ages.
    let examined = Examined::of(&said(&nodes, &["doctor", "--json"]));
    assert_eq!(examined.code, 0);
    let found = examined.found("quarantine");
    assert!(found.len() == 1 && found[0].contains(&dead), "{found:?}");
    let waits: Vec<&str> = found[0].split(' ').collect();
    let told = |unit: &str| {
        let told = waits.windows(2).find(|pair| pair[1] == unit);
        told.map_or(0, |pair| pair[0].parse::<u64>().unwrap())
    };
    let waits = Duration::from_secs(60 * told("min") + told("s"));
    let longest = MAX_TTL + MAX_TTL / 10;
    assert!(
        waits > MAX_TTL - MAX_TTL / 10 && waits <= longest,
        "{found:?}"
    );
    said(&nodes, &["ready", &dead]).ended(1);

    let status = json(&nodes, &["status", "report"]);
    assert_eq!(status["state"], "held", "{status:#}");
    assert_eq!(status["votes"], 4, "{status:#}");
    let holder = status["holder"].as_str().unwrap();
    assert!(holder.contains(&format!(":{}", app.id())), "{status:#}");

    let ready = said(&nodes, &["ready", &dead, "--wait", "90s"]);
    let took = stopped.elapsed();
    assert_eq!(ready.code, 0, "{ready:?}");
    assert!(took <= longest, "from stop to vote: {took:?}");
    is_clean(&nodes);

    assert!(app.try_wait().unwrap().is_none(), "it held on all the time");
    kill_process(Pid::from_child(&app), Signal::TERM).unwrap();
    assert_eq!(app.wait().unwrap().code(), Some(0));
    let held = json(&nodes, &["status", "report"]);
    assert_eq!(held["state"], "free", "{held:#}");
}

/// Masters that an operator blesses though they have forgotten, restarted two of three or three of five at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_guard_off_and_a_majority_restarted_at_once_a_lock_has_two_holders() {
    for (count, wrongly) in [(3, true), (3, false), (5, true), (5, false)] {
        let mut nodes = Nodes::start(count);
        let client = async |urls: Vec<String>| {
            let builder = Redlock::builder().nodes(urls).ttl(MAX_TTL).max_ttl(MAX_TTL);
            builder.build().await.unwrap()
        };
        let relays: Vec<Relay> = nodes.iter().map(|node| Relay::to(node.address())).collect();
        let first = client(relays.iter().map(Relay::url).collect()).await;
        first.dangerous_bless().await;
        let guard = first.acquire("report").await.unwrap();
        // Its holder is cut off just then, and has its lease for some seconds more.
        relays.iter().for_each(Relay::cut);
        for node in 0..=count / 2 {
            nodes[node].restart().unwrap();
        }
        let second = client(nodes.addresses()).await;
        if wrongly {
            second.dangerous_bless().await;
        }
        let acquired = tokio::time::timeout(MAX_TTL / 10, second.acquire("report")).await;
        let is_second = matches!(&acquired, Ok(Ok(other)) if other.lease().is_held());
        assert!(guard.lease().is_held());
        assert_eq!(is_second, wrongly, "{count} nodes: {acquired:?}");
    }
}
