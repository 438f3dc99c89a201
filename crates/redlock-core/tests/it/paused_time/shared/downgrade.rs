//! Writers that go on as readers.

use redlock_core::{AcquireErrorKind, ExtendErrorKind, Mode};
use tokio::time::sleep;

use super::{at_once, ends, for_long, starts, try_alone};
use crate::paused_time::fixtures::{Faults, FaultyNode, SECOND, client, faulty};

// Shows: R4.3.
#[tokio::test(start_paused = true)]
async fn what_was_had_alone_is_shared_without_being_let_go() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let guard = redlock.acquire("a").await.unwrap();
    let lease = guard.lease().clone();
    let mut waits = starts({
        let (redlock, other) = (redlock.clone(), other.clone());
        async move {
            let options = || for_long().shared();
            let here = redlock.acquire_with("a", options()).await.unwrap();
            let there = other.acquire_with("a", options()).await.unwrap();
            assert!(here.token() < there.token());
            (here, there)
        }
    });
    sleep(SECOND).await;
    assert!(waits.try_join_next().is_none());
    let token = guard.token();
    guard.downgrade().await.unwrap();
    guard.downgrade().await.unwrap();
    let (here, there) = ends(waits).await;
    assert!(guard.is_held() && lease.mode() == Mode::Shared);
    assert_eq!(guard.token(), token);
    assert!(here.token() > token);
    assert_eq!(try_alone(&other).await, Some(AcquireErrorKind::Contended));
    // It is renewed as one that is shared.
    sleep(60 * SECOND).await;
    assert!(guard.is_held() && here.is_held() && there.is_held());
    drop((here, there));
    assert_eq!(try_alone(&other).await, Some(AcquireErrorKind::Contended));
    guard.release().await.unwrap();
    sleep(SECOND).await;
    assert_eq!(try_alone(&other).await, None);
}

/// A writer that waits in the same process does not get the lease of a reader.
// Shows: R4.3.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_shared_is_handed_over_to_nobody() {
    let redlock = client(&faulty(3)).await;
    let guard = redlock.acquire("a").await.unwrap();
    guard.downgrade().await.unwrap();
    let reader = redlock.acquire_shared("a").await.unwrap();
    let mut waits = starts({
        let redlock = redlock.clone();
        async move { redlock.acquire_with("a", for_long()).await.unwrap() }
    });
    sleep(SECOND).await;
    guard.release().await.unwrap();
    sleep(SECOND).await;
    assert!(waits.try_join_next().is_none(), "it is read");
    drop(reader);
    let alone = ends(waits).await;
    assert_eq!(alone.mode(), Mode::Exclusive);
}

#[tokio::test(start_paused = true)]
async fn who_downgrades_what_is_lost_is_told() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let options = at_once().ttl(SECOND).renewal(redlock_core::Renewal::Manual);
    let guard = redlock.acquire_with("a", options).await.unwrap();
    sleep(2 * SECOND).await;
    let refused = guard.downgrade().await.unwrap_err();
    assert_eq!(refused.kind(), ExtendErrorKind::Lost);
    // Where no majority is told, others may share it, and the lease goes on.
    let guard = redlock.acquire("b").await.unwrap();
    let silent = Faults {
        silent: true,
        ..Faults::default()
    };
    nodes[..2].iter().for_each(|node| node.set(silent));
    let refused = guard.downgrade().await.unwrap_err();
    assert_eq!(refused.kind(), ExtendErrorKind::Unconfirmed);
    nodes.iter().for_each(FaultyNode::heal);
    assert_eq!((guard.is_held(), guard.mode()), (true, Mode::Shared));
    sleep(20 * SECOND).await;
    assert!(guard.is_held());
    assert!(redlock.acquire_shared("b").await.unwrap().is_held());
}

// Shows: R4.3.
#[tokio::test(start_paused = true)]
async fn a_downgrade_that_was_not_confirmed_can_be_done_again() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let options = at_once().renewal(redlock_core::Renewal::Manual);
    let guard = redlock.acquire_with("a", options).await.unwrap();
    let hole = Faults {
        black_hole: true,
        ..Faults::default()
    };
    nodes[..2].iter().for_each(|node| node.set(hole));
    let refused = guard.downgrade().await.unwrap_err();
    assert_eq!(refused.kind(), ExtendErrorKind::Unconfirmed);
    nodes.iter().for_each(FaultyNode::heal);
    sleep(3 * SECOND).await;
    guard.downgrade().await.unwrap();
    let reader = other.acquire_with("a", at_once().shared()).await.unwrap();
    sleep(60 * SECOND).await;
    // Of a lease that is lost, nothing can be confirmed.
    let lost = guard.downgrade().await.unwrap_err();
    assert_eq!(lost.kind(), ExtendErrorKind::Lost);
    drop(reader);
}
