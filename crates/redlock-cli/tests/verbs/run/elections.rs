//! A command that runs while its process leads, and the look at the leader.

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::Value;
use tokio::time::Instant;

use super::{Run, next, send};
use crate::kit::{Nodes, Relay, eventually, run};

/// Starts a candidate whose command writes the token of each term.
fn candidate(nodes: &Nodes, name: &str, terms: &Path) -> Child {
    let script = "echo $REDLOCK_FENCE >>\"$0\"; exec sleep 100";
    let mut command = nodes.command(&["elect", "job", "--candidate", name, "--"]);
    let command = command.args(["sh", "-c", script]).arg(terms);
    command.stderr(Stdio::null()).spawn().unwrap()
}

/// The tokens of the terms that have begun.
fn terms(file: &Path) -> Vec<u64> {
    let lines = fs::read_to_string(file).unwrap_or_default();
    lines.lines().map(|line| line.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_candidate_leads_and_the_next_follows_it_with_the_code_of_its_command() {
    let nodes = Nodes::blessed(3).await;
    let leader = |more: &[&str]| nodes.run(&[&["leader", "job"], more].concat());
    let none = leader(&[]);
    none.told(1, "no leader");
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("terms");
    let mut first = candidate(&nodes, "web-7", &begun);
    eventually("it leads", || terms(&begun).len() == 1);
    let done = leader(&[]);
    assert!(
        done.code == 0 && done.out.starts_with("web-7 leads since "),
        "{done:?}"
    );
    let json: Value = serde_json::from_str(&leader(&["--json"]).out).unwrap();
    assert_eq!(
        (&json["state"], &json["leader"]),
        (&"held".into(), &"web-7".into())
    );
    let left = json["remaining_ms"].as_f64().unwrap();
    assert!((1.0..=2_000.0).contains(&left), "{json}");

    let words = [
        "elect",
        "job",
        "--candidate",
        "web-8",
        "--",
        "sh",
        "-c",
        "exit 5",
    ];
    let mut second = nodes.command(&words).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    assert!(second.try_wait().unwrap().is_none(), "it waits");
    send(&first, Signal::TERM);
    assert_eq!(first.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(second.wait().unwrap().code(), Some(5));
    assert_eq!(leader(&[]).code, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_whose_term_is_lost_stops_its_command_and_leads_again_with_a_greater_token() {
    let nodes = Nodes::blessed(3).await;
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("terms");
    let mut child = candidate(&nodes, "web-7", &begun);
    eventually("it leads", || terms(&begun).len() == 1);
    for node in 0..3 {
        nodes.ask(node, &["DEL", "{redlock}:lock:job"]);
    }
    eventually("it leads again", || terms(&begun).len() == 2);
    let tokens = terms(&begun);
    assert!(tokens[0] < tokens[1], "{tokens:?}");
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    let client = nodes.client().await;
    assert!(client.try_acquire("job").await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_is_over_before_the_next_one_and_remains_a_candidate() {
    let nodes = Nodes::blessed(3).await;
    let relays: Vec<Relay> = nodes.iter().map(|node| Relay::to(node.address())).collect();
    let nodes = nodes.at(relays.iter().map(Relay::url).collect());
    let mut run = Run::stubborn(&nodes, &["elect", "job", "--grace", "300ms"]);
    let other = nodes.client().await;
    relays.iter().for_each(Relay::cut);
    let guard = next(&other).await;
    run.is_over();
    assert!(guard.lease().is_held());
    assert!(run.child.try_wait().unwrap().is_none());
    run.signal(Signal::INT);
    assert_eq!(run.code(), 128 + 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_waits_for_nodes_that_are_down_and_no_leader_is_told_of_meanwhile() {
    let mut nodes = Nodes::blessed(3).await;
    nodes[0].kill().unwrap();
    nodes[1].kill().unwrap();
    nodes.run(&["leader", "job"]).ended(3);
    let mut waits = nodes
        .command(&["elect", "job", "--", "true"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Longer than the default wait for a quorum.
    std::thread::sleep(Duration::from_secs(3));
    assert!(waits.try_wait().unwrap().is_none());
    nodes[0].restart().unwrap();
    nodes[1].restart().unwrap();
    assert!(waits.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stands_still_delays_no_look_at_the_leader() {
    let nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    nodes[0].freeze().unwrap();
    let begun = Instant::now();
    nodes.run(&["leader", "job"]).ended(1);
    let guard = client.acquire("job").await.unwrap();
    nodes.run(&["leader", "job"]).ended(0);
    // Less than the time limit of a connection, for both looks and an acquire.
    assert!(begun.elapsed() < Duration::from_secs(1), "{begun:?}");
    drop(guard);
    nodes[0].thaw().unwrap();
}

#[tokio::test]
async fn a_candidate_that_cannot_be_is_refused() {
    let nodes = Nodes::blessed(3).await;
    let long = "x".repeat(65);
    for (words, why) in [
        (
            &["job", "--candidate", &*long, "--", "true"][..],
            "candidate",
        ),
        (&["", "--", "true"], "empty"),
        (&["job", "--ttl", "1h", "--", "true"], "ttl"),
    ] {
        let done = run(&mut nodes.command(&[&["elect"], words].concat()));
        done.complained(2, why);
    }
    nodes
        .run(&["elect", "job", "--", "no-such-program"])
        .ended(127);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_leads_by_the_word_of_nodes_that_are_in_quarantine() {
    let nodes = Nodes::blessed(3).await;
    for node in 0..3 {
        // What an attempt takes that no majority of votes confirms.
        nodes.ask(node, &["FLUSHALL"]);
        let owner = format!("{} web-7", "0".repeat(32));
        nodes.ask(node, &["SET", "{redlock}:lock:job", &owner, "PX", "60000"]);
    }
    let looked = nodes.run(&["leader", "job"]).ended(3);
    assert!(!looked.out.contains("web-7"), "{looked:?}");
    let why = looked.out.matches("it may have forgotten leases: wait");
    assert_eq!(why.count(), 3, "{looked:?}");

    let status = nodes.run(&["status", "job", "--json"]);
    let json: Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(
        (status.code, &json["state"]),
        (3, &"unknown".into()),
        "{json}"
    );
    assert_eq!(json["holder"], Value::Null, "{json}");
    assert_eq!(
        (&json["nodes_with_key"], &json["votes"]),
        (&3.into(), &0.into()),
        "{json}"
    );
    assert_eq!(json["nodes"][0]["holder"], "web-7", "{json}");
    let text = nodes.run(&["status", "job"]).out;
    let words = "unknown: 3 of 3 nodes have it for one holder, and 0 of these vote";
    assert!(text.starts_with(words), "{text}");
}
