//! Shared leases, in paused time: readers together, writers alone, nobody kept waiting for good.

use std::time::Duration;

use redlock_core::{
    AcquireErrorKind, AcquireOptions, ExtendErrorKind, LockGuard, LossReason, Mode, Redlock,
    ResourceKeys, Wait,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::fixtures::{Faults, FaultyNode, MS, SECOND, client, faulty, keys, soon};

fn at_once() -> AcquireOptions {
    AcquireOptions::new().wait(Wait::Never)
}

fn for_long() -> AcquireOptions {
    AcquireOptions::new().wait(Wait::UpTo(60 * SECOND))
}

/// What one attempt to have the key alone comes to.
async fn try_alone(redlock: &Redlock) -> Option<AcquireErrorKind> {
    let tried = redlock.try_acquire("a").await;
    tried.err().map(|error| error.kind())
}

/// Starts a caller that waits.
fn starts<F>(caller: F) -> JoinSet<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut callers = JoinSet::new();
    callers.spawn(caller);
    callers
}

/// Returns what the caller comes to.
async fn ends<T: 'static>(mut callers: JoinSet<T>) -> T {
    let ended = soon(callers.join_next()).await.expect("there is one");
    ended.expect("it does not panic")
}

fn requests(nodes: &[FaultyNode]) -> usize {
    nodes.iter().map(FaultyNode::requests).sum()
}

#[tokio::test(start_paused = true)]
async fn many_share_a_key_and_one_has_it_alone() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let first = redlock.acquire_shared("a").await.unwrap();
    sleep(SECOND).await;
    let second = redlock.acquire_shared("a").await.unwrap();
    let third = other.acquire_shared("a").await.unwrap();
    assert!(first.token() < second.token() && second.token() < third.token());
    assert_eq!(first.mode(), Mode::Shared);
    for guard in [first, second, third] {
        for client in [&redlock, &other] {
            assert_eq!(try_alone(client).await, Some(AcquireErrorKind::Contended));
        }
        // Each has it for as long as it wants.
        sleep(40 * SECOND).await;
        assert!(guard.is_held());
        guard.release().await.unwrap();
        // The wish of those who tried is over.
        sleep(SECOND).await;
    }
    let alone = other.try_acquire("a").await.unwrap();
    assert_eq!(alone.mode(), Mode::Exclusive);
    for client in [&redlock, &other] {
        let refused = client.acquire_with("a", at_once().shared()).await;
        assert_eq!(refused.unwrap_err().kind(), AcquireErrorKind::Contended);
    }
    drop(alone);
    sleep(10 * MS).await;
    assert_eq!(keys(&nodes), [0; 3]);
}

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
    // Who may hold it for a limited time is not joined either.
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
    let tokens = guards.iter().map(LockGuard::token);
    assert!(tokens.clone().all(|token| token == guards[0].token()));
    assert!(requests(&nodes) - before <= 6, "one acquire, confirmed");
}

/// Readers of four processes come all the time, and one that writes waits for those 10 ms in which they join, for the
/// readers that are there, and for its next attempt.
#[tokio::test(start_paused = true)]
async fn s26_who_writes_waits_for_the_readers_that_are_there_and_for_no_others() {
    const READ: Duration = Duration::from_millis(100);
    let nodes = faulty(3);
    let mut readers = JoinSet::new();
    for _ in 0..4 {
        let replica = client(&nodes).await;
        for reader in 0..16 {
            let replica = replica.clone();
            readers.spawn(async move {
                sleep(reader * 7 * MS).await;
                loop {
                    let guard = replica.acquire_with("a", for_long().shared()).await;
                    let guard = guard.unwrap();
                    sleep(READ).await;
                    assert!(guard.is_held());
                    drop(guard);
                    sleep(MS).await;
                }
            });
        }
    }
    sleep(SECOND).await;
    let writer = client(&nodes).await;
    for _ in 0..20 {
        let began = Instant::now();
        let guard = writer.acquire_with("a", for_long()).await.unwrap();
        let waited = began.elapsed();
        assert!(waited <= READ + 10 * MS + 110 * MS, "{waited:?}");
        sleep(5 * MS).await;
        drop(guard);
        sleep(150 * MS).await;
    }
    // Readers go on too.
    let began = Instant::now();
    drop(writer.acquire_with("a", for_long().shared()).await.unwrap());
    assert!(began.elapsed() < SECOND);
    readers.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn readers_of_a_process_wait_behind_its_writer() {
    let redlock = client(&faulty(3)).await;
    let reader = redlock.acquire_shared("a").await.unwrap();
    let (writes, reads) = (redlock.clone(), redlock.clone());
    let writer = starts(async move { writes.acquire_with("a", for_long()).await.unwrap() });
    sleep(MS).await;
    let mut late = starts(async move {
        let guard = reads.acquire_with("a", for_long().shared()).await.unwrap();
        guard.token()
    });
    sleep(5 * SECOND).await;
    assert!(late.try_join_next().is_none(), "it came after the writer");
    drop(reader);
    let alone = ends(writer).await;
    let token = alone.token();
    drop(alone);
    assert!(ends(late).await > token);
}

#[tokio::test(start_paused = true)]
async fn a_wish_ends_though_who_wished_is_gone() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let reader = redlock.acquire_shared("a").await.unwrap();
    let gave_up = timeout(300 * MS, other.acquire("a")).await;
    assert!(gave_up.is_err());
    sleep(20 * MS).await;
    let began = Instant::now();
    let options = for_long().shared();
    let late = soon(redlock.acquire_with("a", options)).await.unwrap();
    let waited = began.elapsed();
    assert!(waited > 100 * MS && waited < SECOND, "{waited:?}");
    drop((reader, late));
    sleep(10 * MS).await;
    assert_eq!(keys(&nodes), [0; 3]);
}

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

/// Who waits for the key alone in the same process does not get the lease of who shares it.
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

#[tokio::test(start_paused = true)]
async fn a_shared_hold_is_not_enough_for_who_needs_it_alone() {
    let redlock = client(&faulty(3)).await;
    let work = async {
        let reader = redlock.acquire_shared("a").await.unwrap();
        let again = redlock.acquire_shared("a").await.unwrap();
        assert_eq!(again.token(), reader.token());
        let refused = redlock.acquire("a").await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::AlreadyHeld);
        let told = refused.to_string();
        assert!(told.contains("acquire it alone from the start"), "{told}");
        drop((reader, again));
        let alone = redlock.acquire("a").await.unwrap();
        let reads = redlock.acquire_shared("a").await.unwrap();
        assert_eq!(
            (reads.mode(), reads.token()),
            (Mode::Exclusive, alone.token())
        );
    };
    soon(redlock.scope(work)).await;
    let slots = redlock.slots("reports", 2).unwrap();
    let refused = slots.acquire_with(at_once().shared()).await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Misuse);
}

#[tokio::test(start_paused = true)]
async fn one_more_process_than_can_share_a_key_waits() {
    let nodes = faulty(3);
    let mut replicas = Vec::new();
    for _ in 0..65 {
        replicas.push(client(&nodes).await);
    }
    let mut guards = Vec::new();
    for replica in &replicas[..64] {
        guards.push(replica.acquire_shared("a").await.unwrap());
    }
    let last = || replicas[64].acquire_with("a", at_once().shared());
    let refused = last().await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    guards.swap_remove(7).release().await.unwrap();
    assert!(last().await.unwrap().is_held());
}

/// Whoever is cancelled leaves nothing behind, at whatever moment: neither a lease nor a place, nor a lease that nobody
/// has and others join.
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

/// The end of a scope takes its leases away, and nobody else's.
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

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_left_behind_is_joined_no_more() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
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
