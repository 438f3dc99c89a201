//! Leases that are shared, where nodes lose the key.

use redlock_proto::{Effect, LockMode};

use crate::clients::bench::{Bench, TTL};

/// Lets both clients do what is due, for `ms` milliseconds.
fn both_go_on(bench: &mut Bench, ms: u64) {
    for _ in 0..ms {
        bench.run_until(0, bench.ms() + 1);
        bench.run_until(1, bench.ms());
        bench.due(1);
        bench.answer_all(0);
        bench.answer_all(1);
    }
}

fn has_lost(bench: &mut Bench, peer: usize) -> bool {
    let seen = bench.seen(peer);
    seen.iter()
        .any(|effect| matches!(effect, Effect::Lost { .. }))
}

/// Lets two nodes lose the key, one after the other; each is given it again in between.
fn outlives_losses(mode: LockMode, holders: usize) {
    let mut bench = Bench::new(3);
    bench.mode = mode;
    for peer in 0..holders {
        bench.acquire(peer);
        bench.answer_all(peer);
    }
    let ttls = u64::try_from(4 * TTL.as_millis()).expect("it is short");
    for node in 0..2 {
        bench.nodes[node].drop_lock(&Bench::lock());
        both_go_on(&mut bench, ttls);
    }
    for peer in 0..holders {
        assert!(!has_lost(&mut bench, peer), "{mode:?}, {peer} of {holders}");
    }
}

// Shows: R4.2.
#[test]
fn a_node_that_has_lost_a_key_is_given_it_again_for_each_who_shares_it() {
    outlives_losses(LockMode::Exclusive, 1);
    outlives_losses(LockMode::Shared, 1);
    outlives_losses(LockMode::Shared, 2);
}

// Shows: R4.2.
#[test]
fn nodes_that_were_not_asked_at_first_are_given_the_key_for_each_who_shares_it() {
    let mut bench = Bench::narrow(3);
    bench.mode = LockMode::Shared;
    bench.acquire(0);
    bench.answer_all(0);
    both_go_on(&mut bench, 200);
    bench.acquire(1);
    bench.answer_all(1);
    both_go_on(&mut bench, u64::try_from(4 * TTL.as_millis()).unwrap());
    for node in 0..3 {
        let holders = bench.value(node).map(|value| value.lines().count() - 1);
        assert_eq!(holders, Some(2), "node {node}");
    }
}
