//! A lease and its keys in time: how long the nodes keep a key, and when the holder is told.

use std::{ops::Range, time::Duration};

use redlock_core::{AcquireOptions, LossReason, Renewal};
use redlock_tests::{Nodes, client, eventually, now, within};

const KEY: &str = "{redlock}:lock:a";

/// The first and the last moment at which a node may have been asked how long it keeps the key, and
/// what it said.
fn pttl_at(nodes: &Nodes, node: usize) -> (Range<Duration>, Option<Duration>) {
    let before = now();
    let left = nodes.pttl(node, KEY);
    (before..now(), left)
}

// Shows: T1.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s27_nodes_keep_the_key_for_the_time_to_live() {
    let ttl = Duration::from_millis(7_300);
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), ttl).await;
    let manual = AcquireOptions::new().renewal(Renewal::Manual);
    let started = now();
    let guard = redlock.acquire_with("a", manual).await.unwrap();
    assert_kept(&nodes, started, ttl).await;

    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let started = now();
    guard.extend().await.unwrap();
    assert!(guard.lease().remaining() > ttl - Duration::from_secs(1));
    assert_kept(&nodes, started, ttl).await;
}

/// On every node the key ends no later than `ttl` from now and no earlier than `ttl` from `started`.
async fn assert_kept(nodes: &Nodes, started: Duration, ttl: Duration) {
    for node in 0..nodes.len() {
        // A node outside the majority may not have answered yet.
        let granted = |seen: &(Range<Duration>, Option<Duration>)| {
            seen.1
                .is_some_and(|left| left + (seen.0.end - started) + MILLISECOND > ttl)
        };
        let look = || pttl_at(nodes, node);
        let what = format!("node {node} keeps the key for {ttl:?}");
        let (_, left) = eventually(&what, Duration::from_secs(1), look, granted).await;
        assert!(left <= Some(ttl), "node {node}: {left:?}");
    }
}

// Shows: T2.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_the_loss_is_told_before_the_first_node_forgets_though_all_are_black_holed() {
    let ttl = Duration::from_secs(5);
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), ttl).await;
    let guard = redlock.acquire("a").await.unwrap();

    // Right after a renewal, so that the nodes freeze before the next.
    eventually(
        "a renewal",
        ttl,
        || guard.lease().remaining(),
        |left| *left < ttl * 3 / 4,
    )
    .await;
    eventually(
        "a renewal",
        ttl,
        || guard.lease().remaining(),
        |left| *left > ttl * 9 / 10,
    )
    .await;
    for node in 0..5 {
        let look = || nodes.pttl(node, KEY);
        eventually("all are renewed", ttl / 10, look, |left| {
            *left > Some(ttl * 4 / 5)
        })
        .await;
    }
    let seen: Vec<_> = (0..5).map(|node| pttl_at(&nodes, node)).collect();
    nodes.freeze(0..5);
    assert!(
        guard.lease().remaining() > ttl * 2 / 3,
        "the nodes froze too late for this test: the next renewal may have been made"
    );
    let first_expiry = seen
        .into_iter()
        .map(|(asked, left)| asked.start + left.expect("it has the key"))
        .min()
        .unwrap();

    let deadline = now() + guard.lease().remaining();
    let work = guard.run(std::future::pending::<()>());
    let (reason, lost) = within("the loss", ttl * 2, async {
        tokio::join!(async { (guard.lease().lost().await, now()) }, async {
            (work.await.unwrap_err(), now())
        })
    })
    .await;
    assert_eq!(reason.0, LossReason::Expired);
    assert_eq!(lost.0.reason(), LossReason::Expired);
    for told in [reason.1, lost.1] {
        let (late, left) = (
            told.saturating_sub(deadline),
            first_expiry.saturating_sub(told),
        );
        assert!(
            told < first_expiry,
            "told {late:?} after the deadline, and not before the first expiry"
        );
        assert!(!left.is_zero() && told + MILLISECOND >= deadline);
    }
    assert!(!guard.lease().is_held());
    nodes.thaw(0..5);
}

/// The only thread of this runtime is blocked, as by a handler that calculates or waits for a disk.
// Shows: T2.3.
#[tokio::test(flavor = "current_thread")]
async fn a_thread_that_blocks_delays_no_renewal() {
    let ttl = Duration::from_secs(3);
    let nodes = Nodes::start(3);
    let redlock = client(nodes.urls(), ttl).await;
    let guard = redlock.acquire("a").await.unwrap();
    let first_deadline = now() + guard.lease().remaining();
    while now() < first_deadline {
        std::thread::sleep(MILLISECOND);
    }
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
    nodes.become_empty(ttl).await;
}

// Shows: T2.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s05_a_short_outage_of_a_majority_costs_neither_the_lease_nor_its_keys() {
    let ttl = Duration::from_secs(4);
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), ttl).await;
    let guard = redlock.acquire("a").await.unwrap();
    let first_deadline = now() + guard.lease().remaining();
    let owner = nodes.ask(4, &["GET", KEY]);

    // Over the renewal that is due after a third, and the rounds that repeat it.
    nodes.freeze(0..3);
    tokio::time::sleep(ttl * 5 / 8).await;
    assert!(guard.lease().is_held());
    for node in 3..5 {
        assert_eq!(nodes.ask(node, &["GET", KEY]), owner, "node {node}");
    }
    let left = guard.lease().remaining();
    assert!(
        left < ttl / 2,
        "renewed without a majority: {left:?} are left"
    );
    nodes.thaw(0..3);

    let remaining = || guard.lease().remaining();
    eventually("a renewal after the outage", ttl / 4, remaining, |left| {
        *left > ttl / 2
    })
    .await;
    within("the first deadline passes", ttl, async {
        while now() < first_deadline {
            tokio::select! {
                biased;
                reason = guard.lease().lost() => panic!("lost: {reason}"),
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
        }
    })
    .await;
    assert_eq!(nodes.ask_all(&["GET", KEY]), vec![owner; 5]);
    guard.release().await.unwrap();
    nodes.become_empty(ttl / 4).await;
}

const MILLISECOND: Duration = Duration::from_millis(1);
