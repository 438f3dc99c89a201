//! Readers that become writers.

use redlock_core::{AcquireErrorKind, LossReason, Mode, Renewal};
use tokio::{
    select,
    time::{Instant, sleep},
};

use super::{at_once, ends, for_long, requests, starts, try_alone};
use crate::paused_time::fixtures::{
    Faults, FaultyNode, MS, SECOND, client, faulty, keys, soon, wide_client,
};

const CONTENDED: Option<AcquireErrorKind> = Some(AcquireErrorKind::Contended);

// Shows: R4.4.
#[tokio::test(start_paused = true)]
async fn the_only_reader_becomes_a_writer_without_letting_go() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    // A writer that waits, and that comes behind.
    let mut guard = redlock.acquire_shared("a").await.unwrap();
    let mut waits = starts({
        let other = other.clone();
        async move { other.acquire_with("a", for_long()).await.unwrap() }
    });
    sleep(SECOND).await;
    let (lease, token) = (guard.lease().clone(), guard.token());
    guard.try_upgrade().await.unwrap();
    assert_eq!(
        (guard.mode(), lease.mode()),
        (Mode::Exclusive, Mode::Shared)
    );
    assert_eq!(lease.lost().await, LossReason::Released);
    assert!(guard.token() > token);
    let again = (guard.token(), requests(&nodes));
    guard.try_upgrade().await.unwrap();
    assert_eq!(
        (guard.token(), requests(&nodes)),
        again,
        "it is alone already"
    );
    // It is renewed as any other.
    sleep(40 * SECOND).await;
    assert!(guard.is_held() && waits.try_join_next().is_none());
    for client in [&redlock, &other] {
        let refused = client.acquire_with("a", at_once().shared()).await;
        assert_eq!(refused.unwrap_err().kind(), AcquireErrorKind::Contended);
    }
    let token = guard.token();
    guard.release().await.unwrap();
    let next = ends(waits).await;
    assert!(next.token() > token);
    drop(next);
    sleep(SECOND).await;
    assert_eq!(keys(&nodes), [0; 3]);
}

// Shows: R4.4.
#[tokio::test(start_paused = true)]
async fn an_upgrade_beside_other_readers_is_refused_and_all_go_on() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let mut guard = redlock.acquire_shared("a").await.unwrap();
    // Of the same lease, of the same process, and of another.
    let joined = redlock.acquire_shared("a").await.unwrap();
    let before = requests(&nodes);
    let refused = guard.try_upgrade().await.unwrap_err();
    assert_eq!(Some(refused.kind()), CONTENDED);
    assert_eq!(requests(&nodes), before, "no node was asked");
    drop(joined);
    sleep(SECOND).await;
    for reader in [&redlock, &other] {
        let mut reader = reader.acquire_with("a", for_long().shared()).await.unwrap();
        for reader in [&mut guard, &mut reader] {
            let refused = reader.try_upgrade().await.unwrap_err();
            assert_eq!(Some(refused.kind()), CONTENDED);
            assert_eq!(reader.mode(), Mode::Shared);
        }
        sleep(40 * SECOND).await;
        assert!(guard.is_held() && reader.is_held());
        reader.release().await.unwrap();
    }
    guard.try_upgrade().await.unwrap();
    drop(guard);
    sleep(SECOND).await;
    assert_eq!(keys(&nodes), [0; 3]);
}

/// A lease with two holders, one of them exclusive, would be a wrong grant.
// Shows: R4.4.
#[tokio::test(start_paused = true)]
async fn nobody_joins_a_lease_that_is_being_upgraded() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let mut guard = redlock.acquire_shared("a").await.unwrap();
    let slow = Faults {
        reply_delay: 5 * MS,
        ..Faults::default()
    };
    nodes.iter().for_each(|node| node.set(slow));
    let joins = {
        let redlock = redlock.clone();
        async move {
            sleep(2 * MS).await;
            redlock.acquire_with("a", at_once().shared()).await
        }
    };
    let (upgraded, joined) = tokio::join!(guard.try_upgrade(), joins);
    upgraded.unwrap();
    assert_eq!(Some(joined.unwrap_err().kind()), CONTENDED);
    drop(guard);
    sleep(SECOND).await;
    assert!(redlock.acquire_shared("a").await.is_ok());
}

// Shows: R4.4.
#[tokio::test(start_paused = true)]
async fn an_upgrade_that_is_dropped_leaves_the_shared_lease_and_nothing_else() {
    let nodes = faulty(3);
    let (redlock, other) = (wide_client(&nodes).await, wide_client(&nodes).await);
    let mut guard = redlock.acquire_shared("a").await.unwrap();
    for delay in 0..10 {
        let slow = Faults {
            request_delay: 5 * MS,
            reply_delay: 5 * MS,
            ..Faults::default()
        };
        nodes.iter().for_each(|node| node.set(slow));
        select! {
            biased;
            () = sleep(delay * MS) => {}
            upgraded = guard.try_upgrade() => {
                upgraded.unwrap();
                panic!("it takes 10 ms");
            }
        }
        nodes.iter().for_each(FaultyNode::heal);
        assert!(guard.is_held() && guard.mode() == Mode::Shared);
        sleep(100 * MS).await;
        assert_eq!(keys(&nodes), [1; 3]);
        let reader = other.acquire_with("a", at_once().shared()).await.unwrap();
        reader.release().await.unwrap();
        assert_eq!(try_alone(&other).await, CONTENDED);
        sleep(SECOND).await;
    }
    guard.try_upgrade().await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(keys(&nodes), [0; 3]);
}

// Shows: R4.4.
#[tokio::test(start_paused = true)]
async fn an_upgrade_without_a_majority_fails_and_the_shared_lease_goes_on() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let mut guard = redlock.acquire_shared("a").await.unwrap();
    let silent = Faults {
        silent: true,
        ..Faults::default()
    };
    nodes[1..].iter().for_each(|node| node.set(silent));
    let refused = guard.try_upgrade().await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::NoQuorum);
    assert!(guard.is_held());
    nodes.iter().for_each(FaultyNode::heal);
    sleep(40 * SECOND).await;
    assert!(guard.is_held() && guard.mode() == Mode::Shared);
    assert_eq!(try_alone(&other).await, CONTENDED);
    let reader = other.acquire_with("a", for_long().shared()).await.unwrap();
    drop(reader);
    sleep(SECOND).await;
    guard.try_upgrade().await.unwrap();
}

/// Another may have written between the two leases.
// Shows: R4.4.
#[tokio::test(start_paused = true)]
async fn who_upgrades_what_is_lost_is_told_and_has_nothing() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let options = at_once().shared().ttl(SECOND).renewal(Renewal::Manual);
    let mut guard = redlock.acquire_with("a", options.clone()).await.unwrap();
    sleep(2 * SECOND).await;
    let refused = guard.try_upgrade().await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Expired);
    assert_eq!(guard.lost().await, LossReason::Expired);
    // It is lost while the nodes are asked.
    let mut guard = redlock.acquire_with("b", options).await.unwrap();
    let slow = Faults {
        reply_delay: 300 * MS,
        ..Faults::default()
    };
    nodes.iter().for_each(|node| node.set(slow));
    sleep(800 * MS).await;
    let refused = guard.try_upgrade().await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Expired);
    nodes.iter().for_each(FaultyNode::heal);
    sleep(2 * SECOND).await;
    assert_eq!(keys(&nodes), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn an_upgraded_lease_ends_when_the_shared_one_would_at_the_latest() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let options = at_once().shared().max_hold(20 * SECOND);
    let mut guard = redlock.acquire_with("a", options).await.unwrap();
    let began = Instant::now();
    sleep(15 * SECOND).await;
    guard.try_upgrade().await.unwrap();
    assert_eq!(soon(guard.lost()).await, LossReason::MaxHold);
    let held = began.elapsed();
    assert!((19 * SECOND..=20 * SECOND).contains(&held), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_holder_can_upgrade_and_downgrade_again_and_again() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let keys_of_set = redlock_core::ResourceKeys::new(["a", "b"]).unwrap();
    let options = for_long().shared();
    let mut guard = redlock
        .acquire_all_with(keys_of_set, options)
        .await
        .unwrap();
    let mut last = guard.token();
    for _ in 0..5 {
        guard.try_upgrade().await.unwrap();
        assert!(guard.token() > last);
        last = guard.token();
        for key in ["a", "b"] {
            let refused = other.acquire_with(key, at_once().shared()).await;
            assert_eq!(Some(refused.unwrap_err().kind()), CONTENDED);
        }
        sleep(20 * SECOND).await;
        guard.downgrade().await.unwrap();
        for key in ["a", "b"] {
            let reader = other.acquire_with(key, at_once().shared()).await.unwrap();
            let refused = guard.try_upgrade().await.unwrap_err();
            assert_eq!(Some(refused.kind()), CONTENDED);
            reader.release().await.unwrap();
        }
        sleep(20 * SECOND).await;
    }
    guard.release().await.unwrap();
    assert_eq!(keys(&nodes), [0; 3]);
}

// Shows: R4.4.
#[tokio::test(start_paused = true)]
async fn an_upgraded_lease_belongs_to_the_scope_of_the_shared_one() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let kept = redlock.scope(async {
        let mut guard = redlock.acquire_shared("a").await.unwrap();
        let refused = redlock.acquire("a").await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::AlreadyHeld);
        let other = redlock.acquire_shared("a").await.unwrap();
        let refused = guard.try_upgrade().await.unwrap_err();
        assert_eq!(Some(refused.kind()), CONTENDED, "it has another guard");
        drop(other);
        // Also in a scope within.
        redlock.scope(guard.try_upgrade()).await.unwrap();
        let again = redlock.acquire("a").await.unwrap();
        assert_eq!(again.token(), guard.token());
        guard
    });
    let kept = kept.await;
    assert_eq!(kept.lost().await, LossReason::ScopeEnded);
    sleep(SECOND).await;
    assert_eq!(keys(&nodes), [0; 3]);
}

/// Another reader of the same lease has left its key behind: that is the key of the lease which goes on.
#[tokio::test(start_paused = true)]
async fn an_upgrade_leaves_nothing_of_a_lease_that_another_holder_left_behind() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let mut guard = redlock.acquire_shared("a").await.unwrap();
    redlock.acquire_shared("a").await.unwrap().leave();
    guard.try_upgrade().await.unwrap();
    sleep(SECOND).await;
    guard.downgrade().await.unwrap();
    guard.try_upgrade().await.unwrap();
    drop(guard);
    assert_eq!(keys(&nodes), [1; 3], "it stays");
    sleep(20 * SECOND).await;
    assert_eq!(keys(&nodes), [0; 3]);
}
