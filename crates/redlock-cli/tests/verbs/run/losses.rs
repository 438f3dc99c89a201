//! The end of a command that must not go on, however stubborn it is: no other client holds the lock while it runs.

use std::{process::Stdio, time::Duration};

use rustix::process::Signal;

use super::{Run, next, under};
use crate::kit::{Nodes, Relay, eventually};

const RUN: [&str; 4] = ["run", "job", "--grace", "300ms"];
const LOCK: &str = "{redlock}:lock:job";

/// Nodes that are reached over relays, so that the command can be cut off while others are not.
async fn cut_off() -> (Nodes, Vec<Relay>) {
    let nodes = Nodes::blessed(3).await;
    let relays: Vec<Relay> = nodes.iter().map(|node| Relay::to(node.address())).collect();
    let urls = relays.iter().map(Relay::url).collect();
    (nodes.at(urls), relays)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_cut_off_is_over_before_the_next_holder() {
    let (nodes, relays) = cut_off().await;
    let mut run = Run::stubborn(&nodes, &RUN);
    let other = nodes.client().await;
    relays.iter().for_each(Relay::cut);
    let guard = next(&other).await;
    run.is_over();
    assert_eq!(run.code(), 76);
    assert!(guard.lease().is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_keys_are_gone_is_killed_at_once() {
    let nodes = Nodes::blessed(3).await;
    let mut run = Run::stubborn(&nodes, &RUN);
    for node in 0..3 {
        nodes.ask(node, &["DEL", LOCK]);
    }
    assert_eq!(run.code(), 76);
    run.is_over();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_holder_is_killed_is_over_before_the_next_holder() {
    let nodes = Nodes::blessed(3).await;
    let run = Run::stubborn(&nodes, &RUN);
    let other = nodes.client().await;
    run.signal(Signal::KILL);
    drop(next(&other).await);
    run.is_over();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_holder_stands_still_is_over_before_the_next_holder() {
    let nodes = Nodes::blessed(3).await;
    let mut run = Run::stubborn(&nodes, &RUN);
    let other = nodes.client().await;
    run.signal(Signal::STOP);
    drop(next(&other).await);
    run.is_over();
    run.signal(Signal::CONT);
    assert_eq!(run.code(), 76);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_ends_when_it_is_asked_to_is_told_as_lost() {
    let (nodes, relays) = cut_off().await;
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let script = "trap 'exit 0' TERM; touch \"$0\"; while :; do sleep 0.02; done";
    let mut command = nodes.command(&RUN);
    let child = command
        .args(["--", "sh", "-c", script, runs.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // And not only held by a node or two.
    eventually("it runs", || runs.exists());
    relays.iter().for_each(Relay::cut);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(76));
    // Which nodes are to blame is what an operator looks for first.
    let said = String::from_utf8_lossy(&done.stderr);
    for url in nodes.addresses() {
        let address = url.trim_start_matches("redis://");
        assert!(said.contains(&format!("\n  {address}: ")), "{said}");
    }
}

/// `timeout` puts itself and what it starts into a group of their own, and `setsid` into a session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_leaves_its_group_is_over_before_the_next_holder() {
    for program in [&["timeout", "60"][..], &["setsid", "--wait"]] {
        let nodes = Nodes::blessed(3).await;
        let other = nodes.client().await;
        let run = Run::started_by(&nodes, &RUN, program);
        run.signal(Signal::KILL);
        drop(next(&other).await);
        run.is_over();

        let mut run = Run::started_by(&nodes, &RUN, program);
        for node in 0..3 {
            nodes.ask(node, &["DEL", LOCK]);
        }
        assert_eq!(run.code(), 76);
        run.is_over();
    }
}

/// Neither for a command that was stopped, nor for one that has ended by itself, whose code stays its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "the patience of a test")]
async fn a_lock_that_is_lost_is_kept_no_longer() {
    for (end, code) in [("exec sleep 100", 76), ("exit 7", 7)] {
        let (nodes, relays) = cut_off().await;
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        let script = format!("touch \"$0\"; {end}");
        let arguments = ["--at-least", "1m"];
        let command = ["sh", "-c", &script, runs.to_str().unwrap()];
        let mut running = under(&nodes, &arguments, &command).spawn().unwrap();
        eventually("it runs", || runs.exists());
        relays.iter().for_each(Relay::cut);
        let begun = std::time::Instant::now();
        assert_eq!(running.wait().unwrap().code(), Some(code));
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}
