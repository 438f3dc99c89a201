//! One node's counters can be wrong without doing harm to the others.

use std::time::Duration;

use redlock_core::{AcquireErrorKind, AcquireOptions, FencingToken, NodeAnswer, Redlock, Renewal};
use redlock_tests::{Connect, Nodes, builder, client, wide_client, within};
use tokio::time::sleep;

const FENCE: &str = "{redlock}:counters";
const TTL: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(2);

/// The counter of the resource "a": the only one that its lease leaves on a node.
fn shard(nodes: &Nodes, node: usize) -> String {
    let fields = nodes[node].command(&["ZRANGE", FENCE, "0", "-1"]).unwrap();
    let fields = fields.as_array().unwrap().iter();
    let mut numbers = fields
        .filter_map(|field| field.as_text())
        .filter(|field| field.parse::<u16>().is_ok());
    let shard = numbers.next().expect("a lease was counted").to_owned();
    assert_eq!(numbers.next(), None);
    shard
}

// Shows: T3.10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_beyond_its_range_costs_one_vote_and_no_more() {
    let mut nodes = Nodes::start(3);
    let redlock = wide_client(nodes.urls(), TTL).await;
    redlock.acquire("a").await.unwrap().release().await.unwrap();
    nodes.become_empty(SOON).await;
    let shard = shard(&nodes, 0);
    let beyond = (FencingToken::MAX.get() + 1).to_string();
    nodes.ask(0, &["ZADD", FENCE, &beyond, &shard]);

    // A client that is refused gets the counters too, and must not count on from this one.
    let other = client(nodes.urls(), TTL).await;
    let manual = AcquireOptions::new().renewal(Renewal::Manual);
    nodes.ask(0, &["SET", "{redlock}:lock:a", "somebody", "PX", "5000"]);
    let held = redlock.acquire_with("a", manual.clone()).await.unwrap();
    for _ in 0..20 {
        let refused = other.try_acquire("a").await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::Contended, "{refused}");
    }
    held.release().await.unwrap();
    nodes.become_empty(SOON * 4).await;
    let mut newest = held_token(&nodes);
    for client in [&other, &redlock] {
        for _ in 0..20 {
            let guard = client.try_acquire("a").await.unwrap();
            assert!(guard.token().get() >= newest);
            newest = guard.token().get();
            guard.release().await.unwrap();
        }
    }

    nodes.kill(2..3);
    let error = other.try_acquire("a").await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::NoQuorum, "{error}");
    let reports = error.reports().iter();
    let beyond = |answer: &NodeAnswer| answer.to_string().contains("beyond its range");
    assert!(
        reports.clone().any(|report| beyond(&report.answer)),
        "{error}"
    );
    // Other resources have other counters.
    other
        .try_acquire("another")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

/// What the second node has counted.
fn held_token(nodes: &Nodes) -> u64 {
    // As a number with a fraction, which is none.
    let score = nodes.ask(1, &["ZSCORE", FENCE, &shard(nodes, 1)]);
    score.parse().unwrap()
}

/// Waits until a node votes, or does not; the first one fails whenever its counters are read, and is told so.
async fn votes(redlock: &Redlock, node: usize, is_to: bool) {
    let stands = async {
        while (redlock.node_reports().await[node].answer == NodeAnswer::Reachable) != is_to {
            sleep(Duration::from_millis(5)).await;
        }
    };
    within("it stands so", SOON * 2, stands).await;
}

// Shows: T3.10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_beyond_its_range_keeps_no_other_node_in_quarantine() {
    let mut nodes = Nodes::start(5);
    let max_ttl = Duration::from_secs(1);
    let connect = Connect {
        max_ttl,
        ..Connect::to(nodes.urls(), max_ttl)
    };
    let redlock = connect.client().await;
    redlock.acquire("a").await.unwrap().release().await.unwrap();
    let beyond = (FencingToken::MAX.get() + 1).to_string();
    nodes.ask(0, &["ZADD", FENCE, &beyond, "7"]);
    for _ in 0..2 {
        nodes[4].restart().unwrap();
        votes(&redlock, 4, false).await;
        votes(&redlock, 4, true).await;
    }

    // Nor those that an operator vouches for.
    nodes[4].restart().unwrap();
    let fresh = builder(nodes.urls(), max_ttl)
        .max_ttl(max_ttl)
        .build()
        .await
        .unwrap();
    let reports = fresh.dangerous_bless().await;
    assert_eq!(reports[4].answer, NodeAnswer::Reachable, "{}", reports[4]);
}
