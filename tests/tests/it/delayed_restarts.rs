//! Masters that stay away after a stop, under a client that was told so.

use std::time::Duration;

use redlock_core::{Redlock, RedlockBuilder};
use redlock_tests::{Nodes, builder, now, voting};

/// A tenth of it, and the second of an absence, are long beside what starting servers takes on a busy machine.
const TTL: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(5);

fn delayed(nodes: &Nodes, max_ttl: Duration) -> RedlockBuilder {
    builder(nodes.urls(), max_ttl)
        .max_ttl(max_ttl)
        .expert(|expert| expert.dangerous_trust_delayed_restarts = true)
}

/// The longest lease, 1 % of it and a second.
fn absence(max_ttl: Duration) -> Duration {
    max_ttl + max_ttl / 100 + Duration::from_secs(1)
}

/// Waits until the node has a standing that says this.
async fn says(redlock: &Redlock, node: usize, words: &str) {
    let report = async || redlock.node_reports().await[node].to_string();
    let mut said = String::new();
    for _ in 0..500 {
        said = report().await;
        if said.contains(words) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no {words:?} in: {said}");
}

// Shows: E8, R1.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_waited_votes_a_tenth_of_the_longest_lease_later_at_most() {
    let mut nodes = Nodes::start(3);
    let redlock = delayed(&nodes, TTL).build().await.unwrap();
    // There was no first quarantine to wait for either.
    voting(&redlock, 3, SOON).await;
    let before = redlock.acquire("a").await.unwrap().token();
    let stopped = now();
    nodes[0].kill().unwrap();
    tokio::time::sleep(absence(TTL)).await;
    nodes[0].restart().unwrap();
    voting(&redlock, 3, SOON).await;
    let away = now() - stopped;
    assert!(away <= TTL + TTL / 10, "{away:?} of {TTL:?}");
    // It counts from where the others are.
    nodes.freeze(1..2);
    let lease = redlock.acquire("a").await.unwrap();
    assert!(lease.token() > before);
    nodes.thaw(1..2);
}

// Shows: R1.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_did_not_wait_is_kept_from_voting_by_who_saw_it_before() {
    let max_ttl = TTL / 10;
    let mut nodes = Nodes::start(3);
    let redlock = delayed(&nodes, max_ttl).build().await.unwrap();
    voting(&redlock, 3, SOON).await;
    let stopped = now();
    nodes[0].restart().unwrap();
    says(&redlock, 0, "declared to be delayed").await;
    voting(&redlock, 3, 3 * max_ttl).await;
    assert!(now() - stopped > max_ttl, "leases may have been valid");
}

// Shows: R1.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_was_emptied_is_quarantined_though_restarts_are_delayed() {
    let nodes = Nodes::start(3);
    let max_ttl = TTL / 10;
    let redlock = delayed(&nodes, max_ttl).build().await.unwrap();
    voting(&redlock, 3, SOON).await;
    let emptied = now();
    nodes.ask(0, &["FLUSHALL"]);
    says(&redlock, 0, "may have forgotten").await;
    voting(&redlock, 3, 3 * max_ttl).await;
    assert!(now() - emptied > max_ttl, "leases may have been valid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_were_told_otherwise_are_refused() {
    let nodes = Nodes::start(3);
    let max_ttl = TTL / 10;
    let redlock = delayed(&nodes, max_ttl).build().await.unwrap();
    voting(&redlock, 3, SOON).await;
    let other = builder(nodes.urls(), max_ttl).max_ttl(max_ttl);
    let other = other.connect_lazily().build().await.unwrap();
    for node in 0..3 {
        says(&other, node, "delayed_restarts").await;
    }
}
