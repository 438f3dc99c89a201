//! Renewal, loss, and what a failed extension must not do.

use std::time::Duration;

use redlock_core::{AcquireOptions, ExtendErrorKind, LossReason, ReleaseErrorKind, Renewal};
use tokio::time::Instant;

use crate::paused_time::fixtures::{
    Faults, MS, SECOND, client, faulty, keys, settle, soon, wide_client,
};

/// 10 s less the drift allowance of 2 % and 2 ms.
const VALIDITY: Duration = Duration::from_millis(9_798);

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_for_as_long_as_its_guard_lives() {
    let nodes = faulty(5);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let guard = redlock.acquire("key").await.unwrap();
    assert_eq!(guard.lease().remaining(), VALIDITY);
    for _ in 0..100 {
        tokio::time::sleep(SECOND).await;
        assert!(guard.lease().remaining() >= 6 * SECOND);
        assert!(other.try_acquire("key").await.is_err());
    }
    guard.release().await.unwrap();
    assert_eq!(keys(&nodes), [0; 5]);
}

#[tokio::test(start_paused = true)]
async fn without_renewal_a_lease_ends_and_may_be_extended_by_hand() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let manual = AcquireOptions::new().renewal(Renewal::Manual);
    let guard = redlock.acquire_with("key", manual).await.unwrap();
    tokio::time::sleep(5 * SECOND).await;
    guard.extend().await.unwrap();
    assert_eq!(guard.lease().remaining(), VALIDITY);
    let start = Instant::now();
    assert_eq!(soon(guard.lease().lost()).await, LossReason::Expired);
    assert_eq!(start.elapsed(), VALIDITY);
    assert_eq!(
        guard.extend().await.unwrap_err().kind(),
        ExtendErrorKind::Lost
    );
    assert_eq!(
        guard.release().await.unwrap_err().kind(),
        ReleaseErrorKind::Lost
    );
    settle().await;
    assert_eq!(keys(&nodes), [0; 3]);
}

// Shows: T2.4.
#[tokio::test(start_paused = true)]
async fn s05_a_failed_extension_keeps_a_valid_lease() {
    let nodes = faulty(3);
    let redlock = wide_client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    let start = Instant::now();
    nodes.iter().for_each(|node| node.node.stop());
    let error = guard.extend().await.unwrap_err();
    assert_eq!(error.kind(), ExtendErrorKind::Unconfirmed);
    assert_eq!(error.reports().len(), 3);
    tokio::time::sleep(6 * SECOND - start.elapsed()).await;
    assert!(guard.lease().is_held());
    assert_eq!(keys(&nodes), [1; 3]);
    nodes.iter().for_each(|node| node.node.start());
    tokio::time::sleep(3 * SECOND).await;
    assert!(
        guard.lease().remaining() > 6 * SECOND,
        "{:?}",
        guard.lease().remaining()
    );
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn s08_nothing_is_extended_after_the_release() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    // The release meets a renewal that is about to start, under way, or just over.
    for offset in (0..=60).map(|step| 3_300 * MS + step * MS) {
        let guard = redlock.acquire("key").await.unwrap();
        for node in &nodes {
            node.set(Faults {
                request_delay: 10 * MS,
                reply_delay: 10 * MS,
                ..Faults::default()
            });
        }
        tokio::time::sleep(offset).await;
        guard.release().await.unwrap();
        tokio::time::sleep(100 * MS).await;
        assert_eq!(keys(&nodes), [0; 3], "released after {offset:?}");
        nodes
            .iter()
            .for_each(crate::paused_time::fixtures::FaultyNode::heal);
    }
}

#[tokio::test(start_paused = true)]
async fn s09_renewal_goes_on_through_reconnections() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    for round in 0..30 {
        let node = &nodes[round % 3];
        node.set(Faults::CUT);
        tokio::time::sleep(2 * SECOND).await;
        node.heal();
        assert!(guard.lease().is_held(), "round {round}");
    }
}

// Shows: T2.2.
#[tokio::test(start_paused = true)]
async fn work_is_dropped_before_it_is_polled_after_the_deadline() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let manual = AcquireOptions::new().renewal(Renewal::Manual);
    let guard = redlock.acquire_with("key", manual).await.unwrap();
    let lease = guard.lease().clone();
    let work = async {
        loop {
            // The process is paused: no timer fires until long after the deadline, and the work's own
            // wake-up comes at the same moment.
            assert!(lease.is_held(), "polled without a lease");
            tokio::time::sleep(VALIDITY).await;
        }
    };
    let ran: Result<(), _> = soon(guard.run(work)).await;
    assert_eq!(ran.unwrap_err().reason(), LossReason::Expired);
}

// Shows: T1.6.
#[tokio::test(start_paused = true)]
async fn a_view_learns_of_the_release() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    let view = guard.lease().clone();
    let (reason, ()) = tokio::join!(view.lost(), async { drop(guard) });
    assert_eq!(reason, LossReason::Released);
    assert_eq!(view.remaining(), Duration::ZERO);
}

// Shows: T1.6.
#[tokio::test(start_paused = true)]
async fn an_extension_that_says_lost_meets_no_view_that_says_held() {
    for _ in 0..50 {
        let nodes = faulty(3);
        let redlock = client(&nodes).await;
        let manual = AcquireOptions::new().renewal(Renewal::Manual);
        let guard = redlock.acquire_with("key", manual).await.unwrap();
        nodes.iter().for_each(|node| node.node.drop_locks());
        assert_eq!(
            guard.extend().await.unwrap_err().kind(),
            ExtendErrorKind::Lost
        );
        assert!(!guard.lease().is_held());
    }
}

#[tokio::test(start_paused = true)]
async fn each_extension_by_hand_counts_from_its_own_call() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let manual = AcquireOptions::new().renewal(Renewal::Manual);
    let guard = redlock.acquire_with("key", manual).await.unwrap();
    for node in &nodes {
        node.set(Faults::late_replies(400 * MS));
    }
    let later = async {
        tokio::time::sleep(300 * MS).await;
        guard.extend().await.unwrap();
        assert_eq!(guard.lease().remaining(), VALIDITY - 400 * MS);
    };
    let (first, ()) = tokio::join!(guard.extend(), later);
    first.unwrap();
}
