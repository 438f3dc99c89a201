//! How long a command waits for its lock, and what it says.

use std::{process::Command, time::Duration};

use rustix::process::Signal;

use super::{send, under};
use crate::kit::{Nodes, Relay, run};

#[tokio::test]
async fn a_lock_that_somebody_has_is_told_by_an_exit_code_and_the_holder() {
    let nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    let guard = client.acquire("job").await.unwrap();
    let refused = run(&mut under(&nodes, &["--no-wait"], &["true"])).ended(75);
    let me = std::process::id().to_string();
    assert!(refused.err.contains(&me), "{refused:?}");
    for wait in ["0s", "1ms"] {
        let refused = run(&mut under(&nodes, &["--wait", wait], &["true"]));
        assert_eq!(refused.code, 75, "{wait}: {refused:?}");
    }
    let mut hurried = under(&nodes, &[], &["true"]);
    run(hurried.env("REDLOCK_WAIT", "1ms")).ended(75);
    run(&mut under(&nodes, &["-n", "-E", "3"], &["true"])).ended(3);
    let waits = under(&nodes, &["--wait", "10s"], &["true"])
        .spawn()
        .unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    guard.release().await.unwrap();
    assert!(waits.wait_with_output().unwrap().status.success());
    for wait in ["0s", "1ms"] {
        let done = run(&mut under(&nodes, &["--wait", wait], &["true"]));
        assert_eq!(done.code, 0, "{wait}: {done:?}");
    }
}

#[tokio::test]
async fn nodes_that_come_back_within_the_wait_are_waited_for() {
    let mut nodes = Nodes::blessed(3).await;
    for node in 0..2 {
        nodes[node].kill().unwrap();
    }
    let mut waits = under(&nodes, &["--wait", "30s"], &["true"])
        .spawn()
        .unwrap();
    // Longer than `run` without `--wait` waits for a quorum.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(waits.try_wait().unwrap().is_none());
    for node in 0..2 {
        nodes[node].restart().unwrap();
    }
    assert!(waits.wait().unwrap().success());
}

#[tokio::test]
async fn a_quarantine_is_told_and_waited_through() {
    let nodes = Nodes::start(3);
    run(&mut under(&nodes, &["--wait", "300ms"], &["true"])).ended(69);
    let done = run(&mut under(&nodes, &["--wait", "20s"], &["true"]));
    done.complained(0, "may have forgotten leases");
}

#[tokio::test]
async fn without_a_majority_there_is_no_lock() {
    let mut nodes = Nodes::blessed(3).await;
    for node in 0..2 {
        nodes[node].kill().unwrap();
    }
    run(&mut under(&nodes, &["--wait", "2s"], &["true"])).ended(69);
}

#[tokio::test]
async fn who_is_interrupted_while_it_waits_leaves_nothing() {
    let nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    let guard = client.acquire("job").await.unwrap();
    let mut waits = under(&nodes, &["--wait", "20s"], &["true"])
        .spawn()
        .unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    send(&waits, Signal::TERM);
    assert_eq!(waits.wait().unwrap().code(), Some(128 + 15));
    guard.release().await.unwrap();
    assert!(client.try_acquire("job").await.is_ok());
}

#[tokio::test]
async fn a_ttl_above_max_ttl_is_refused_by_name_and_not_shortened() {
    let nodes = Nodes::blessed(3).await;
    let too_long = |command: &mut Command| run(command.env("REDLOCK_TTL", "60s"));
    let given = too_long(&mut under(&nodes, &[], &["true"]));
    // The nodes remember the other.
    let remembered = too_long(under(&nodes, &[], &["true"]).env_remove("REDLOCK_MAX_TTL"));
    for done in [given, remembered] {
        assert_eq!(done.code, 2, "{done:?}");
        for words in ["60s", "REDLOCK_TTL", "max_ttl of 2s", "--ttl"] {
            assert!(done.err.contains(words), "{words}: {done:?}");
        }
    }
    too_long(&mut under(&nodes, &["--ttl", "2s"], &["true"])).ended(0);
}

/// A lease that is given in line lasts for a second at first, and the grace of a command may be longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_waited_in_line_begins_and_ends_by_itself() {
    let nodes = Nodes::start(3);
    let servers: Vec<_> = (0..3).map(|node| nodes[node].address()).collect();
    let relays = servers.iter();
    let relays = relays.map(|server| Relay::delaying(*server, Duration::from_millis(40)));
    let relays: Vec<_> = relays.collect();
    let nodes = nodes.at(relays.iter().map(Relay::url).collect());
    let long = |mut command: Command| {
        command
            .env("REDLOCK_TTL", "10s")
            .env("REDLOCK_MAX_TTL", "10s");
        command
    };
    run(&mut long(nodes.command(&["bless", "--yes"]))).ended(0);
    for round in 0..3 {
        let mut holds = long(under(&nodes, &[], &["sleep", "1.5"])).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(900)).await;
        let waited = run(&mut long(under(&nodes, &["--wait", "20s"], &["true"])));
        assert_eq!(waited.code, 0, "{round}: {waited:?}");
        assert!(holds.wait().unwrap().success());
    }
}
