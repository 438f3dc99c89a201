//! Slots, in paused time: at most so many holders at once.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use redlock_core::{AcquireErrorKind, AcquireOptions, Slots, Wait};
use tokio::{task::JoinSet, time::Instant};

use crate::paused_time::fixtures::{Faults, FaultyNode, MS, SECOND, client, faulty};

fn keys(nodes: &[FaultyNode]) -> Vec<usize> {
    nodes.iter().map(|node| node.node.keys()).collect()
}

/// Four callers for each slot, from two processes, each of which holds one three times.
// Shows: R5.1.
#[tokio::test(start_paused = true)]
async fn s25_no_more_hold_than_there_are_slots_and_hardly_fewer() {
    const COUNT: usize = 3;
    const HOLD: std::time::Duration = tokio::time::Duration::from_millis(100);
    let nodes = faulty(3);
    let replicas = [client(&nodes).await, client(&nodes).await];
    let inside = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for number in 0..4 * COUNT {
        let slots = replicas[number % 2].slots("reports", COUNT).unwrap();
        let inside = Arc::clone(&inside);
        callers.spawn(async move {
            let options = AcquireOptions::new().wait(Wait::UpTo(60 * SECOND));
            let mut most = 0;
            for _ in 0..3 {
                let guard = slots.acquire_with(options.clone()).await.unwrap();
                most = most.max(inside.fetch_add(1, SeqCst) + 1);
                tokio::time::sleep(HOLD).await;
                assert!(guard.guard().is_held());
                inside.fetch_sub(1, SeqCst);
                guard.release().await.unwrap();
            }
            most
        });
    }
    let began = Instant::now();
    let mut most = 0;
    while let Some(caller) = callers.join_next().await {
        most = most.max(caller.unwrap());
    }
    assert_eq!(most, COUNT);
    let held = HOLD * 3 * 4;
    let used = held.as_secs_f64() / began.elapsed().as_secs_f64();
    assert!(used >= 0.85, "{used}");
    assert_eq!(keys(&nodes), [0; 3]);
}

/// Two processes keep all slots busy, each with more callers than there are slots.
#[tokio::test(start_paused = true)]
async fn processes_whose_callers_follow_each_other_leave_slots_to_others() {
    const COUNT: usize = 3;
    let nodes = faulty(3);
    let waits = |wait| AcquireOptions::new().wait(Wait::UpTo(wait));
    let mut busy = JoinSet::new();
    for _ in 0..2 {
        let redlock = client(&nodes).await;
        for _ in 0..2 * COUNT {
            let slots = redlock.slots("reports", COUNT).unwrap();
            busy.spawn(async move {
                loop {
                    let slot = slots.acquire_with(waits(600 * SECOND)).await.unwrap();
                    tokio::time::sleep(100 * MS).await;
                    slot.release().await.unwrap();
                }
            });
        }
    }
    tokio::time::sleep(SECOND).await;
    let slots = client(&nodes).await.slots("reports", COUNT).unwrap();
    for _ in 0..10 {
        let slot = slots.acquire_with(waits(5 * SECOND)).await.unwrap();
        slot.release().await.unwrap();
    }
}

/// All slots are another client's, and nodes take almost their time limit to say so.
// Shows: T6.9.
#[tokio::test(start_paused = true)]
async fn slots_of_slow_nodes_are_not_tried_one_after_the_other() {
    for wait in [Wait::Never, Wait::UpTo(100 * MS)] {
        let nodes = faulty(3);
        let (holder, redlock) = (client(&nodes).await, client(&nodes).await);
        let held = holder.slots("reports", 8).unwrap();
        let mut guards = Vec::new();
        for _ in 0..8 {
            guards.push(held.acquire().await.unwrap());
        }
        for node in &nodes {
            node.set(Faults::late_replies(400 * MS));
        }
        let began = Instant::now();
        let options = AcquireOptions::new().wait(wait);
        let slots = redlock.slots("reports", 8).unwrap();
        let refused = slots.acquire_with(options).await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::Contended);
        assert!(began.elapsed() <= 1_100 * MS, "{:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn one_attempt_finds_the_slot_that_is_free() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let theirs = other.slots("reports", 8).unwrap();
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(theirs.try_acquire().await.unwrap());
    }
    let which: BTreeSet<usize> = held.iter().map(|guard| guard.slot()).collect();
    assert_eq!(which.len(), 8);
    let ours = redlock.slots("reports", 8).unwrap();
    let refused = ours.try_acquire().await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    let free = held.swap_remove(5);
    let (slot, token) = (free.slot(), free.guard().token());
    free.release().await.unwrap();
    let guard = ours.try_acquire().await.unwrap();
    assert_eq!(guard.slot(), slot);
    assert!(guard.guard().token() > token);
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_the_first_that_is_free_and_leaves_nothing_of_the_others() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let theirs = other.slots("reports", 4).unwrap();
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(theirs.acquire().await.unwrap());
    }
    let ours = redlock.slots("reports", 4).unwrap();
    {
        // One that gives up.
        let waits = ours.acquire();
        assert!(tokio::time::timeout(SECOND, waits).await.is_err());
    }
    // The second time it is another slot than the one that it had last, and asks for first.
    for _ in 0..2 {
        let free = held.remove(0);
        let slot = free.slot();
        let waits = async { ours.acquire().await.unwrap() };
        let frees = async {
            tokio::time::sleep(SECOND).await;
            free.release().await.unwrap();
        };
        let (guard, ()) = tokio::join!(waits, frees);
        assert_eq!(guard.slot(), slot);
        tokio::time::sleep(SECOND).await;
        assert_eq!(keys(&nodes), [4; 3]);
        guard.release().await.unwrap();
        held.push(theirs.acquire().await.unwrap());
    }
    drop(held);
    tokio::time::sleep(10 * MS).await;
    assert_eq!(keys(&nodes), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn the_slot_that_was_had_last_is_asked_for_first() {
    let nodes = faulty(3);
    let slots = client(&nodes).await.slots("reports", 16).unwrap();
    let first = slots.acquire().await.unwrap();
    let slot = first.slot();
    first.release().await.unwrap();
    for _ in 0..10 {
        let before: usize = nodes.iter().map(FaultyNode::requests).sum();
        let guard = slots.acquire().await.unwrap();
        assert_eq!(guard.slot(), slot);
        let asked = nodes.iter().map(FaultyNode::requests).sum::<usize>() - before;
        assert!(asked <= 3, "{asked} requests");
        guard.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_scope_has_its_slot_again() {
    let redlock = client(&faulty(3)).await;
    let slots = redlock.slots("reports", 8).unwrap();
    let work = async {
        let first = slots.acquire().await.unwrap();
        let other = redlock.slots("reports", 8).unwrap();
        let again = other.try_acquire().await.unwrap();
        assert_eq!(again.slot(), first.slot());
        assert_eq!(again.guard().token(), first.guard().token());
    };
    redlock.scope(work).await;
}

#[tokio::test(start_paused = true)]
async fn no_slots_and_too_many_are_refused() {
    let redlock = client(&faulty(3)).await;
    for (count, words) in [(0, "0 slots"), (65, "65 slots"), (usize::MAX, "1 to 64")] {
        let refused = redlock.slots("reports", count).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
    let long = "x".repeat(511);
    let refused = redlock.slots(long, 2).unwrap_err().to_string();
    assert!(refused.contains("513 bytes"), "{refused}");
    let slots = redlock.slots("reports", Slots::MAX_COUNT).unwrap();
    assert_eq!(slots.count(), 64);
    slots.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn whoever_has_a_slot_and_finds_no_other_is_told_that_others_have_them() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let slots = redlock.slots("reports", 2).unwrap();
    let (own, _others) = (
        slots.acquire().await.unwrap(),
        slots.acquire().await.unwrap(),
    );
    for _ in 0..10 {
        let again = own.guard().run(slots.try_acquire()).await.unwrap();
        assert_eq!(again.unwrap_err().kind(), AcquireErrorKind::Contended);
    }
    assert_eq!(slots.slot_of(own.guard().key()), Some(own.slot()));
}

/// No caller may wait behind another, and this process holds the slot that is tried first.
#[tokio::test(start_paused = true)]
async fn a_slot_that_is_free_is_found_where_nobody_may_wait() {
    for count in [2, 3, 8] {
        let redlock = client(&faulty(3)).await;
        let slots = redlock.slots("reports", count).unwrap();
        let options = AcquireOptions::new()
            .max_waiters_per_key(0)
            .wait(Wait::Never);
        let mut held = Vec::new();
        for _ in 0..count {
            held.push(slots.acquire_with(options.clone()).await.unwrap());
        }
        let refused = slots.acquire_with(options).await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    }
}

/// One attempt does not wait, so no limit of waiting concerns it.
#[tokio::test(start_paused = true)]
async fn one_attempt_at_a_key_that_is_held_is_contended_however_many_may_wait() {
    let redlock = client(&faulty(3)).await;
    let _held = redlock.acquire("key").await.unwrap();
    let options = AcquireOptions::new().max_waiters_per_key(0);
    let refused = redlock.acquire_with("key", options.clone()).await;
    assert_eq!(refused.unwrap_err().kind(), AcquireErrorKind::Overloaded);
    let refused = redlock.acquire_with("key", options.wait(Wait::Never)).await;
    assert_eq!(refused.unwrap_err().kind(), AcquireErrorKind::Contended);
}

#[tokio::test(start_paused = true)]
async fn one_attempt_without_a_majority_asks_for_few_slots() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let slots = redlock.slots("reports", 64).unwrap();
    nodes[..2].iter().for_each(|node| node.set(Faults::SILENT));
    let before = nodes[2].requests();
    slots.try_acquire().await.unwrap_err();
    let asked = nodes[2].requests() - before;
    assert!(asked < 9, "{asked} requests");
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_slot_begins_with_the_first_attempt() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let held = other.slots("reports", 3).unwrap();
    let _held = tokio::try_join!(held.acquire(), held.acquire(), held.acquire()).unwrap();
    let slow = crate::paused_time::fixtures::Faults::late_replies(300 * MS);
    nodes.iter().for_each(|node| node.set(slow));
    let slots = redlock.slots("reports", 3).unwrap();
    let began = Instant::now();
    let options = AcquireOptions::new().wait(Wait::UpTo(2 * SECOND));
    let refused = slots.acquire_with(options).await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    let waited = began.elapsed();
    assert!(waited >= 2 * SECOND && waited < 2_600 * MS, "{waited:?}");
}

/// A replica of the next version waits for the slots of the one before.
// Shows: R5.2.
#[tokio::test(start_paused = true)]
async fn s25_a_client_that_gives_another_number_of_slots_waits_until_the_others_are_done() {
    let nodes = faulty(3);
    let (old, new) = (client(&nodes).await, client(&nodes).await);
    let few = old.slots("reports", 2).unwrap();
    let many = new.slots("reports", 4).unwrap();
    let held = few.acquire().await.unwrap();
    // The number is remembered as long as the lease is renewed, at every moment.
    for _ in 0..60 {
        tokio::time::sleep(SECOND).await;
        let refused = many.try_acquire().await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::OtherSlots);
    }
    let refused = many.try_acquire().await.unwrap_err();
    let told = refused.to_string();
    assert!(
        told.starts_with("other clients give the resource another number of slots"),
        "{told}"
    );
    assert!(
        told.contains("others give it 2 slots, remembered for "),
        "{told}"
    );
    let began = Instant::now();
    let options = AcquireOptions::new().wait(Wait::UpTo(3 * SECOND));
    let refused = many.acquire_with(options).await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::OtherSlots);
    assert!(began.elapsed() >= 3 * SECOND, "it waits as for a holder");
    // Another name has a number of its own, and so has another slot of the same name.
    assert!(new.slots("images", 4).unwrap().try_acquire().await.is_ok());
    assert!(few.try_acquire().await.is_ok());
    let mut waits = JoinSet::new();
    waits.spawn(async move {
        let options = AcquireOptions::new().wait(Wait::UpTo(60 * SECOND));
        many.acquire_with(options).await
    });
    tokio::time::sleep(SECOND).await;
    held.release().await.unwrap();
    let began = Instant::now();
    let won = waits.join_next().await.unwrap().unwrap().unwrap();
    assert!(began.elapsed() <= 11 * SECOND, "{:?}", began.elapsed());
    // Now it is the other way round.
    let refused = few.try_acquire().await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::OtherSlots);
    won.release().await.unwrap();
    assert_eq!(keys(&nodes), [0; 3]);
}

/// A slot that one caller leaves to the next of its process is had without asking the nodes.
// Shows: R5.2.
#[tokio::test(start_paused = true)]
async fn a_slot_is_not_handed_over_to_a_caller_with_another_number() {
    let redlock = client(&faulty(3)).await;
    let (one, two) = (
        redlock.slots("reports", 1).unwrap(),
        redlock.slots("reports", 2).unwrap(),
    );
    let held = one.acquire().await.unwrap();
    let other = two.try_acquire().await.unwrap_err();
    assert_eq!(other.kind(), AcquireErrorKind::OtherSlots);
    let mut waits = JoinSet::new();
    waits.spawn(async move {
        let options = AcquireOptions::new().wait(Wait::UpTo(5 * SECOND));
        two.acquire_with(options).await.map(drop)
    });
    // The process still hands its lease on.
    tokio::time::sleep(50 * MS).await;
    held.release().await.unwrap();
    let again = one.acquire().await.unwrap();
    let refused = waits.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::OtherSlots);
    drop(again);
}

/// It has heard it first, while the others were down.
// Shows: R5.2.
#[tokio::test(start_paused = true)]
async fn a_node_that_remembers_another_number_is_one_node_that_refuses() {
    let nodes = faulty(3);
    let (stray, redlock) = (client(&nodes).await, client(&nodes).await);
    let other = client(&nodes).await;
    let hole = Faults {
        black_hole: true,
        ..Faults::default()
    };
    nodes[1..].iter().for_each(|node| node.set(hole));
    let refused = stray.slots("reports", 3).unwrap().try_acquire().await;
    assert_eq!(refused.unwrap_err().kind(), AcquireErrorKind::NoQuorum);
    nodes.iter().for_each(FaultyNode::heal);
    tokio::time::sleep(3 * SECOND).await;
    for _ in 0..20 {
        let slots = redlock.slots("reports", 2).unwrap();
        let first = slots.try_acquire().await.unwrap();
        let others = other.slots("reports", 2).unwrap();
        let second = others.try_acquire().await.unwrap();
        assert_ne!(first.slot(), second.slot());
        for slots in [slots, others] {
            let refused = slots.try_acquire().await.unwrap_err();
            assert_eq!(refused.kind(), AcquireErrorKind::Contended);
        }
        first.release().await.unwrap();
        second.release().await.unwrap();
    }
    // An attempt that splits the votes does not wait for a slow node; with it, it would have had a majority.
    let slow = Faults {
        reply_delay: 100 * MS,
        ..Faults::default()
    };
    nodes[1].set(slow);
    let slots = redlock.slots("reports", 2).unwrap();
    let refused = slots.try_acquire().await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Contended, "{refused}");
    slots.acquire().await.unwrap().release().await.unwrap();
}
