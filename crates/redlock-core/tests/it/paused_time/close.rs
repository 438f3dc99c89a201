//! Closing a client, and letting go of it.

use redlock_core::{AcquireErrorKind, Redlock};
use tokio::time::Instant;

use crate::paused_time::fixtures::{
    Faults, MS, SECOND, client, faulty, keys, settle, soon, wide_client,
};

// Shows: T6.9.
#[tokio::test(start_paused = true)]
async fn closing_answers_every_waiter_at_once() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let held = other.acquire("key").await.unwrap();
    let start = Instant::now();
    let waiters = futures_util::future::join_all((0..5).map(|_| redlock.acquire("key")));
    let (waited, ()) = tokio::join!(waiters, async {
        tokio::time::sleep(300 * MS).await;
        redlock.close().await;
    });
    for error in waited.into_iter().map(Result::unwrap_err) {
        assert_eq!(error.kind(), AcquireErrorKind::Closed);
    }
    assert_eq!(start.elapsed(), 300 * MS);
    assert_eq!(
        redlock.acquire("other").await.unwrap_err().kind(),
        AcquireErrorKind::Closed
    );
    drop(held);
}

// Shows: T5.2.
#[tokio::test(start_paused = true)]
async fn closing_waits_for_clean_up_and_not_for_guards() {
    let nodes = faulty(3);
    let redlock = wide_client(&nodes).await;
    let kept = redlock.acquire("kept").await.unwrap();
    let dropped = redlock.acquire("dropped").await.unwrap();
    for node in &nodes {
        node.set(Faults::late_requests(50 * MS));
    }
    drop(dropped);
    redlock.close().await;
    assert_eq!(keys(&nodes), [1; 3]);
    // The guard that is left still owns its lease.
    tokio::time::sleep(30 * SECOND).await;
    assert!(kept.lease().is_held());
    kept.release().await.unwrap();
    assert_eq!(keys(&nodes), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_though_every_node_hangs() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    for node in &nodes {
        node.set(Faults::BLACK_HOLE);
    }
    drop(guard);
    let start = Instant::now();
    redlock.close().await;
    assert!(start.elapsed() <= 501 * MS, "after {:?}", start.elapsed());
    redlock.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_guard_outlives_its_client() {
    let nodes = faulty(3);
    let guard = {
        let redlock = client(&nodes).await;
        redlock.acquire("key").await.unwrap()
    };
    tokio::time::sleep(60 * SECOND).await;
    assert!(guard.lease().is_held());
    drop(guard);
    settle().await;
    assert_eq!(keys(&nodes), [0; 3]);
}

/// Waits until the client is ready, or is not.
async fn becomes_ready(redlock: &Redlock, ready: bool) {
    soon(async {
        while redlock.is_ready().await != ready {
            tokio::time::sleep(10 * MS).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_is_ready_while_it_is_open_and_a_majority_votes() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    becomes_ready(&redlock, true).await;
    nodes[0].node.stop();
    tokio::time::sleep(10 * SECOND).await;
    assert!(redlock.is_ready().await, "without one of three");
    nodes[1].node.stop();
    becomes_ready(&redlock, false).await;
    nodes[0].node.start();
    becomes_ready(&redlock, true).await;
    // It is in reach, and does not vote, because it may have forgotten leases.
    nodes[2].node.clear();
    becomes_ready(&redlock, false).await;
    nodes[1].node.start();
    becomes_ready(&redlock, true).await;
    redlock.close().await;
    assert!(!redlock.is_ready().await);
}
