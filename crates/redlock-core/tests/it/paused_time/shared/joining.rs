//! Readers of one process, which share one lease.

use redlock_core::{LockGuard, LossReason, ResourceKeys};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{at_once, ends, for_long, requests, starts};
use crate::paused_time::fixtures::{
    Faults, FaultyNode, MS, SECOND, client, faulty, keys, soon, wide_client,
};

// Shows: R4.6.
#[tokio::test(start_paused = true)]
async fn callers_of_one_process_share_one_lease_and_the_last_lets_it_go() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let first = redlock.acquire_shared("a").await.unwrap();
    let before = requests(&nodes);
    let mut guards: Vec<LockGuard> = Vec::new();
    for _ in 0..50 {
        guards.push(redlock.acquire_shared("a").await.unwrap());
        guards.push(redlock.acquire_with("a", at_once().shared()).await.unwrap());
    }
    assert_eq!(requests(&nodes), before, "no node was asked");
    assert!(guards.iter().all(|guard| guard.token() == first.token()));
    first.release().await.unwrap();
    let last = guards.pop().unwrap();
    drop(guards);
    sleep(60 * SECOND).await;
    assert!(last.is_held(), "it is renewed");
    assert_eq!(keys(&nodes), [1; 3]);
    last.release().await.unwrap();
    assert_eq!(keys(&nodes), [0; 3]);
    // A lease that is gone is not joined.
    let again = redlock.acquire_shared("a").await.unwrap();
    assert!(again.is_held());
}

// Shows: R4.6.
#[tokio::test(start_paused = true)]
async fn only_who_asks_for_the_same_joins_a_lease() {
    let redlock = client(&faulty(3)).await;
    let first = redlock.acquire_shared("a").await.unwrap();
    let others = [
        at_once().shared().ttl(SECOND),
        at_once().shared().max_hold(30 * SECOND),
        at_once().shared().renewal(redlock_core::Renewal::Manual),
    ];
    for options in others {
        let guard = redlock.acquire_with("a", options).await.unwrap();
        assert!(guard.token() > first.token());
    }
    // A lease that may be held for a limited time is not joined either.
    let limited = at_once().shared().max_hold(SECOND);
    let first = redlock.acquire_with("b", limited.clone()).await.unwrap();
    let second = redlock.acquire_with("b", limited).await.unwrap();
    assert!(second.token() > first.token());
    let set = ResourceKeys::new(["c", "d"]).unwrap();
    let first = redlock.acquire_shared("c").await.unwrap();
    let both = redlock.acquire_all_with(set.clone(), at_once().shared());
    let both = both.await.unwrap();
    assert!(both.token() > first.token());
    let again = redlock.acquire_all_with(set, at_once().shared()).await;
    assert_eq!(again.unwrap().token(), both.token());
}

#[tokio::test(start_paused = true)]
async fn many_who_come_at_once_ask_the_nodes_once() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let slow = Faults {
        reply_delay: 3 * MS,
        ..Faults::default()
    };
    nodes.iter().for_each(|node| node.set(slow));
    let before = requests(&nodes);
    let mut readers = JoinSet::new();
    for _ in 0..100 {
        let redlock = redlock.clone();
        readers.spawn(async move { redlock.acquire_shared("a").await.unwrap() });
    }
    let guards = soon(readers.join_all()).await;
    let tokens = guards.iter().map(|guard| guard.token());
    assert!(tokens.clone().all(|token| token == guards[0].token()));
    assert!(requests(&nodes) - before <= 6, "one acquire, confirmed");
}

// Shows: R4.6.
#[tokio::test(start_paused = true)]
async fn a_shared_lease_that_is_lost_is_lost_for_all_who_have_joined_it() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let first = redlock.acquire_shared("a").await.unwrap();
    let second = redlock.acquire_shared("a").await.unwrap();
    let hole = Faults {
        black_hole: true,
        ..Faults::default()
    };
    nodes.iter().for_each(|node| node.set(hole));
    let (one, two) = soon(async { tokio::join!(first.lost(), second.lost()) }).await;
    assert_eq!((one, two), (LossReason::Expired, LossReason::Expired));
    nodes.iter().for_each(FaultyNode::heal);
    // Until they are connected again.
    sleep(10 * SECOND).await;
    let again = soon(redlock.acquire_with("a", for_long().shared())).await;
    assert!(again.unwrap().is_held());
}

/// A reader that is cancelled leaves nothing behind, at whatever moment: neither a lease nor a place, nor a lease
/// without a holder that others join.
// Shows: R4.6.
#[tokio::test(start_paused = true)]
async fn readers_that_give_up_leave_nothing() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let slow = Faults {
        request_delay: 2 * MS,
        reply_delay: 2 * MS,
        ..Faults::default()
    };
    nodes.iter().for_each(|node| node.set(slow));
    for after in 0..12 {
        let mut readers = JoinSet::new();
        for reader in 0..8 {
            let redlock = redlock.clone();
            readers.spawn(async move {
                let patience = MS / 2 * (after + reader);
                timeout(patience, redlock.acquire_shared("a")).await.is_ok()
            });
        }
        soon(readers.join_all()).await;
        sleep(20 * MS).await;
        assert_eq!(keys(&nodes), [0; 3], "after {after}");
    }
    assert!(soon(redlock.acquire("a")).await.unwrap().is_held());
}

/// The end of a scope releases its own leases, and no other caller's.
// Shows: R4.6.
#[tokio::test(start_paused = true)]
async fn a_scope_shares_no_lease_with_callers_outside_of_it() {
    let redlock = client(&faulty(3)).await;
    let outside = redlock.acquire_shared("a").await.unwrap();
    let (within, later) = redlock
        .scope(async {
            let own = redlock.acquire_shared("a").await.unwrap();
            let other = redlock.clone();
            let later = starts(async move { other.acquire_shared("a").await.unwrap() });
            (own, ends(later).await)
        })
        .await;
    assert!(outside.is_held() && later.is_held());
    assert!(!within.is_held(), "its scope has ended");
}

// Shows: R4.6.
#[tokio::test(start_paused = true)]
async fn each_who_shares_a_lost_lease_is_told_so_when_it_lets_go() {
    let redlock = client(&faulty(3)).await;
    let options = || at_once().shared().renewal(redlock_core::Renewal::Manual);
    let first = redlock.acquire_with("a", options()).await.unwrap();
    let second = redlock.acquire_with("a", options()).await.unwrap();
    assert_eq!(first.token(), second.token());
    sleep(60 * SECOND).await;
    for guard in [first, second] {
        let lost = guard.release().await.unwrap_err();
        assert_eq!(lost.kind(), redlock_core::ReleaseErrorKind::Lost);
    }
}

/// Nodes remember a few holders of a key, so a process has few leases on it, however many read and for how long.
// Shows: R4.6.
#[tokio::test(start_paused = true)]
async fn one_process_does_not_use_up_what_nodes_remember() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let mut readers = Vec::new();
    let mut leases = std::collections::BTreeSet::new();
    for _ in 0..1_000 {
        let reader = redlock.acquire_with("a", at_once().shared()).await.unwrap();
        leases.insert(reader.token());
        readers.push((reader, Instant::now() + 5 * SECOND));
        sleep(12 * MS).await;
        readers.retain(|(_, until)| *until > Instant::now());
    }
    assert!(leases.len() < 50, "{}", leases.len());
}

// Shows: R4.6.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_left_behind_is_joined_no_more() {
    let nodes = faulty(3);
    let redlock = wide_client(&nodes).await;
    let (first, second) = (
        redlock.acquire_shared("a").await.unwrap(),
        redlock.acquire_shared("a").await.unwrap(),
    );
    first.leave();
    let third = redlock.acquire_shared("a").await.unwrap();
    assert!(third.token() > second.token());
    third.release().await.unwrap();
    drop(second);
    sleep(SECOND).await;
    assert_eq!(keys(&nodes), [1; 3], "it stays for its time to live");
}
