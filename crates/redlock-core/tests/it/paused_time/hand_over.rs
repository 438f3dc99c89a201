//! A lease that passes from one caller of a process to the next.

use std::{cell::RefCell, rc::Rc, time::Duration};

use futures_util::{future::join_all, poll};
use redlock_core::{AcquireOptions, LossReason, Redlock, Renewal, Wait};
use tokio::time::{Instant, sleep};

use crate::paused_time::fixtures::{
    FaultyNode, MS, SECOND, client, faulty, keys, settle, wide_client,
};

fn asked(nodes: &[FaultyNode]) -> usize {
    nodes.iter().map(FaultyNode::requests).sum()
}

/// Holds a lease, and has `waiters` callers queue up behind it that hold it for 1 ms each.
async fn queue_up<'a>(
    redlock: &'a Redlock,
    waiters: usize,
) -> (
    redlock_core::LockGuard,
    Vec<impl Future<Output = (u64, Instant)> + use<'a>>,
) {
    queue_up_for(redlock, waiters, MS).await
}

async fn queue_up_for<'a>(
    redlock: &'a Redlock,
    waiters: usize,
    hold: Duration,
) -> (
    redlock_core::LockGuard,
    Vec<impl Future<Output = (u64, Instant)> + use<'a>>,
) {
    let guard = redlock.acquire("key").await.expect("nobody holds it");
    let wait = |_| {
        Box::pin(async move {
            let options = AcquireOptions::new().wait(Wait::UpTo(60 * SECOND));
            let guard = redlock.acquire_with("key", options).await;
            let guard = guard.expect("its turn comes in time");
            let token = guard.token().get();
            let at = Instant::now();
            sleep(hold).await;
            drop(guard);
            (token, at)
        })
    };
    let mut waiting: Vec<_> = (0..waiters).map(wait).collect();
    for waiter in &mut waiting {
        assert!(poll!(waiter.as_mut()).is_pending());
    }
    (guard, waiting)
}

// Shows: T1.11, T3.8.
#[tokio::test(start_paused = true)]
async fn s22_the_next_caller_has_a_greater_token_and_asks_nobody() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let (guard, waiting) = queue_up(&redlock, 8).await;
    let first = guard.token().get();
    let lease = guard.lease().clone();
    settle().await;
    let before = asked(&nodes);
    drop(guard);
    assert!(!lease.is_held(), "the former holder's lease is over");
    assert_eq!(lease.lost().await, LossReason::Released);
    let turns = join_all(waiting).await;
    assert_eq!(asked(&nodes) - before, 0, "no node was asked");
    for (place, (token, _)) in turns.iter().enumerate() {
        assert_eq!(*token, first + 1 + place as u64, "in order");
    }
    assert!(turns.is_sorted_by_key(|(_, at)| *at));
    settle().await;
    assert_eq!(keys(&nodes), [0; 3], "the last one released it");
}

// Shows: T3.8.
#[tokio::test(start_paused = true)]
async fn after_the_last_reserved_token_the_nodes_are_asked() {
    let nodes = faulty(3);
    let redlock = wide_client(&nodes).await;
    let (guard, waiting) = queue_up(&redlock, 100).await;
    let mut last = guard.token().get();
    let before = asked(&nodes);
    guard.release().await.unwrap();
    for (token, _) in join_all(waiting).await {
        assert!(token > last, "{token} after {last}");
        last = token;
    }
    settle().await;
    // An acquire and a release for each lease, from each of three nodes, as a lease is handed over 63 times; all of that is
    // over before a holder looks for other clients.
    let leases = 101usize.div_ceil(64);
    assert_eq!(asked(&nodes) - before, 6 * leases - 3);
    assert_eq!(keys(&nodes), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn l03_a_waiter_that_goes_away_at_any_moment_leaves_the_lease_to_the_next_or_to_nobody() {
    for polls in 0..12 {
        for others in 0..2 {
            let nodes = faulty(3);
            let redlock = client(&nodes).await;
            let (guard, mut waiting) = queue_up(&redlock, 1 + others).await;
            let mut leaving = waiting.remove(0);
            drop(guard);
            for _ in 0..polls {
                let _ = poll!(&mut leaving);
                tokio::task::yield_now().await;
            }
            drop(leaving);
            for (token, _) in join_all(waiting).await {
                assert!(token > 0);
            }
            settle().await;
            assert_eq!(keys(&nodes), [0; 3], "{polls} polls, {others} others");
            drop(redlock.try_acquire("key").await.unwrap());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn s09_a_caller_that_is_never_polled_does_not_keep_others_out() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let (guard, waiting) = queue_up(&redlock, 1).await;
    drop(guard);
    let options = AcquireOptions::new().wait(Wait::UpTo(12 * SECOND));
    let start = Instant::now();
    let theirs = other.acquire_with("key", options).await.unwrap();
    assert!(start.elapsed() > 5 * SECOND, "it was handed over");
    drop(waiting);
    settle().await;
    assert!(theirs.lease().is_held());
    theirs.release().await.unwrap();
    assert_eq!(keys(&nodes), [0; 3]);
}

/// A holder that is stuck, or that no task polls, may keep its guard for ever.
// Shows: T2.3.
#[tokio::test(start_paused = true)]
async fn a_guard_whose_lease_is_lost_keeps_nobody_out() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let (ttl, hold) = (2 * SECOND, SECOND);
    let options = AcquireOptions::new().ttl(ttl).max_hold(hold);
    let stuck = redlock.acquire_with("key", options).await.unwrap();
    let start = Instant::now();
    let next = redlock.acquire_with("key", AcquireOptions::new().wait(Wait::UpTo(60 * SECOND)));
    let next = next.await.unwrap();
    let waited = start.elapsed();
    assert!(waited > hold && waited < hold + 2 * ttl, "{waited:?}");
    assert!(next.token() > stuck.token());

    // The end of the stuck guard takes nothing from the next holder, nor from the caller that waits behind it.
    let mut third = Box::pin(redlock.acquire("key"));
    assert!(poll!(third.as_mut()).is_pending());
    drop(stuck);
    settle().await;
    assert!(next.lease().is_held());
    assert!(poll!(third.as_mut()).is_pending());
    drop(next);
    drop(third.await.unwrap());
    settle().await;
    assert_eq!(keys(&nodes), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn only_who_asks_for_the_same_takes_a_lease_over() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let other_terms = [
        AcquireOptions::new().ttl(3 * SECOND),
        AcquireOptions::new().renewal(Renewal::Manual),
        AcquireOptions::new().max_hold(20 * SECOND),
        AcquireOptions::new().lock_delay(SECOND),
    ];
    for options in other_terms {
        let guard = redlock.acquire("key").await.unwrap();
        let token = guard.token();
        let mut next = Box::pin(redlock.acquire_with("key", options.clone()));
        assert!(poll!(next.as_mut()).is_pending());
        let before = asked(&nodes);
        drop(guard);
        let next = next.await.unwrap();
        assert!(next.token() > token);
        assert!(asked(&nodes) > before, "{options:?}");
    }
}

// Shows: T1.11.
#[tokio::test(start_paused = true)]
async fn a_lease_that_has_little_time_left_is_not_handed_over() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    // Valid for 194 ms, of which 20 must be left.
    let short = AcquireOptions::new().ttl(200 * MS).renewal(Renewal::Manual);
    let guard = redlock.acquire_with("key", short.clone()).await.unwrap();
    let waiting = short.wait(Wait::UpTo(20 * SECOND));
    let mut next = Box::pin(redlock.acquire_with("key", waiting));
    assert!(poll!(next.as_mut()).is_pending());
    sleep(180 * MS).await;
    assert!(guard.lease().is_held());
    drop(guard);
    let next = next.await.unwrap();
    assert!(next.lease().remaining() > 190 * MS, "it is a new one");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_changes_hands_faster_than_the_driver_looks_is_not_lost() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    let mut at_once: Vec<_> = (0..6)
        .map(|_| Box::pin(async { redlock.acquire("key").await.unwrap().release().await }))
        .collect();
    for waiter in &mut at_once {
        assert!(poll!(waiter.as_mut()).is_pending());
    }
    let mut last = Box::pin(redlock.acquire("key"));
    assert!(poll!(last.as_mut()).is_pending());
    drop(guard);
    // No other task runs between these.
    for waiter in &mut at_once {
        assert!(poll!(waiter.as_mut()).is_ready());
    }
    let last = last.await.unwrap();
    settle().await;
    assert!(last.lease().is_held());
    sleep(30 * SECOND).await;
    assert!(last.lease().is_held(), "it is renewed");
    last.release().await.unwrap();
}

// Shows: T1.11.
#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_takes_over_is_not_extended_and_ends() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let short = AcquireOptions::new().ttl(150 * MS);
    let guard = redlock.acquire_with("key", short.clone()).await.unwrap();
    let mut waiting = Box::pin(redlock.acquire_with("key", short));
    assert!(poll!(waiting.as_mut()).is_pending());
    let before = asked(&nodes);
    drop(guard);
    sleep(140 * MS).await;
    assert_eq!(asked(&nodes), before, "nobody holds it");
    sleep(20 * MS).await;
    assert_eq!(keys(&nodes), [0; 3]);
    drop(waiting);
}

// Shows: T1.11.
#[tokio::test(start_paused = true)]
async fn a_lease_that_was_handed_over_is_extended_in_time() {
    // The acquire and the release of another key have the driver see the lease before it is taken over.
    for sees_it in [false, true] {
        let nodes = faulty(3);
        let redlock = client(&nodes).await;
        let short = AcquireOptions::new().ttl(150 * MS);
        let guard = redlock.acquire_with("key", short.clone()).await.unwrap();
        let token = guard.token().get();
        let mut waiting = Box::pin(redlock.acquire_with("key", short));
        assert!(poll!(waiting.as_mut()).is_pending());
        sleep(20 * MS).await;
        drop(guard);
        if sees_it {
            let other = redlock.acquire("other").await.unwrap();
            other.release().await.unwrap();
            // Beyond the timer that would have extended it.
            sleep(35 * MS).await;
        }
        let guard = waiting.await.unwrap();
        assert_eq!(guard.token().get(), token + 1, "it was handed over");
        for _ in 0..1_000 {
            sleep(MS).await;
            let remaining = guard.lease().remaining();
            assert!(remaining > 80 * MS, "{remaining:?}, seen: {sees_it}");
        }
    }
}

/// Has 60 callers hold the key for 5 ms each, fewer than a lease can be handed over to; returns after how many a new lease
/// was won.
async fn hold_by_turns(redlock: &Redlock) -> Vec<usize> {
    let (guard, waiting) = queue_up_for(redlock, 60, 5 * MS).await;
    let mut before = guard.token().get();
    drop(guard);
    let holds = join_all(waiting).await;
    let mut from_nodes = Vec::new();
    for (turn, (token, _)) in holds.into_iter().enumerate() {
        if token != before + 1 {
            from_nodes.push(turn);
        }
        before = token;
    }
    from_nodes
}

// Shows: T6.11.
#[tokio::test(start_paused = true)]
async fn after_a_quarter_of_a_second_the_next_caller_contends() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let from_nodes = hold_by_turns(&redlock).await;
    assert_eq!(from_nodes, [50], "after 50 holds of 5 ms");
}

#[tokio::test(start_paused = true)]
async fn another_process_has_its_turn_though_the_queue_here_never_ends() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let done = Rc::new(RefCell::new(false));
    let busy = |_| {
        let (redlock, done) = (redlock.clone(), Rc::clone(&done));
        async move {
            while !*done.borrow() {
                let guard = redlock.acquire("key").await.unwrap();
                sleep(MS).await;
                guard.release().await.unwrap();
            }
        }
    };
    let busy = join_all((0..4).map(busy));
    let patient = async {
        let start = Instant::now();
        for _ in 0..10 {
            let options = AcquireOptions::new().wait(Wait::UpTo(60 * SECOND));
            let guard = other.acquire_with("key", options).await.unwrap();
            guard.release().await.unwrap();
            sleep(10 * MS).await;
        }
        *done.borrow_mut() = true;
        start.elapsed() / 10
    };
    let (_, average) = tokio::join!(busy, patient);
    assert!(average < SECOND / 2, "it waited for {average:?}");
}
