//! Votes count by the clocks and the servers that they came with, and a client notices that its own clock stood still.

use redlock_proto::{Effect, Loss};

use crate::clients::bench::{Bench, MS};

fn has_acquired(effects: &[Effect]) -> bool {
    let acquired = |effect: &Effect| matches!(effect, Effect::Acquired { .. });
    effects.iter().any(acquired)
}

fn losses(effects: &[Effect]) -> Vec<Loss> {
    let loss = |effect: &Effect| match effect {
        Effect::Lost { loss, .. } => Some(*loss),
        _ => None,
    };
    effects.iter().filter_map(loss).collect()
}

/// A client that stood still counted one vote that agreed with old readings, and one that agreed with new ones.
// Shows: L2.2.
#[test]
fn s14_votes_count_only_if_the_clocks_that_came_with_them_agree() {
    for (still, step) in [
        (600_000, 5_000),
        (200_000, 4_500),
        (2_000, 5_000),
        (0, 5_000),
    ] {
        let mut bench = Bench::new(3);
        bench.pass(still);
        bench.acquire(0);
        bench.drop_sent(0, 2);
        bench.answer_all(0);
        assert!(has_acquired(&bench.seen(0)));
        bench.pass(100);
        bench.set_clock(0, step);
        bench.acquire(1);
        for node in [0, 2, 1] {
            bench.answer(1, node);
        }
        let effects = bench.seen(1);
        assert!(!has_acquired(&effects), "after {still} ms: {effects:?}");
    }
}

#[test]
fn a_node_whose_clock_is_wrong_does_not_keep_the_others_from_a_majority() {
    for order in [[0, 1, 2], [1, 0, 2], [1, 2, 0]] {
        let mut bench = Bench::with_clocks(&[5_000, 0, 0]);
        bench.pass(60_000);
        bench.acquire(0);
        for node in order {
            bench.answer(0, node);
        }
        assert!(has_acquired(&bench.seen(0)), "{order:?}");
    }
}

// Shows: A1.
#[test]
fn a_client_whose_own_clock_stood_still_loses_its_leases() {
    let mut bench = Bench::new(3);
    bench.pass(6_000);
    bench.acquire(0);
    bench.answer_all(0);
    assert!(has_acquired(&bench.seen(0)));
    // Half a second passes for the nodes, and none for the client.
    for node in 0..3 {
        bench.set_clock(node, 500);
    }
    bench.read(0, 1);
    bench.answer(0, 0);
    assert_eq!(
        losses(&bench.seen(0)),
        [],
        "the node's clock may have been set"
    );
    bench.answer(0, 1);
    assert_eq!(losses(&bench.seen(0)), [Loss::ClockJump]);
    // What is granted from now on counts from now on.
    bench.pass(1_000);
    bench.acquire(0);
    bench.answer_all(0);
    assert!(has_acquired(&bench.seen(0)));
    bench.read(0, 2);
    bench.answer_all(0);
    assert_eq!(losses(&bench.seen(0)), []);
}

// Shows: A1.
#[test]
fn a_client_whose_own_clock_stood_still_in_an_attempt_does_not_win_it() {
    let mut bench = Bench::new(3);
    bench.acquire(0);
    for node in 0..3 {
        bench.set_clock(node, 500);
    }
    bench.answer_all(0);
    assert!(!has_acquired(&bench.seen(0)));
}

/// The nodes' clocks were ahead before, so that the client has seen them as far ahead already.
// Shows: A1.
#[test]
fn a_standstill_within_an_extension_that_is_late_ends_the_lease() {
    let mut bench = Bench::new(3);
    let set_clocks = |bench: &mut Bench, ahead| {
        (0..3).for_each(|node| bench.set_clock(node, ahead));
    };
    bench.pass(6_000);
    set_clocks(&mut bench, 500);
    bench.read(0, 1);
    bench.answer_all(0);
    bench.acquire(0);
    bench.answer_all(0);
    assert!(has_acquired(&bench.seen(0)));
    set_clocks(&mut bench, 0);
    bench.read(0, 2);
    bench.answer_all(0);
    let at = bench.ms();
    bench.run_until(0, at + 334);
    assert!(bench.has_asked_to_extend(0, 0));
    assert_eq!(losses(&bench.seen(0)), []);
    // The answers of two come when the next extension is due.
    set_clocks(&mut bench, 500);
    bench.pass(340);
    bench.answer(0, 0);
    bench.answer(0, 1);
    assert_eq!(losses(&bench.seen(0)), [Loss::ClockJump]);
}

/// An operator sets the nodes' clocks right, one after the other.
// Shows: A1.
#[test]
fn clocks_that_are_set_right_one_after_another_cost_no_lease() {
    let mut bench = Bench::new(3);
    bench.pass(6_000);
    bench.read(0, 1);
    bench.answer_all(0);
    bench.set_clock(0, 500);
    bench.read(0, 2);
    bench.answer_all(0);
    bench.acquire(0);
    bench.answer_all(0);
    assert!(has_acquired(&bench.seen(0)));
    bench.set_clock(1, 500);
    bench.read(0, 3);
    bench.answer_all(0);
    assert_eq!(losses(&bench.seen(0)), []);
}

/// Whatever the nodes' clocks did before, and whichever majority answers.
// Shows: A1.
#[test]
fn a_standstill_is_seen_by_the_two_of_three_that_answer() {
    for before in [[0, 0, 0], [0, -100, -900], [900, 800, 0]] {
        let mut bench = Bench::new(3);
        bench.pass(6_000);
        bench.read(0, 1);
        bench.answer_all(0);
        (0..3).for_each(|node| bench.set_clock(node, before[node]));
        bench.read(0, 2);
        bench.answer_all(0);
        bench.acquire(0);
        bench.answer_all(0);
        assert!(has_acquired(&bench.seen(0)));
        (0..3).for_each(|node| bench.set_clock(node, before[node] + 700));
        bench.read(0, 3);
        bench.answer(0, 0);
        bench.answer(0, 2);
        assert_eq!(losses(&bench.seen(0)), [Loss::ClockJump], "{before:?}");
    }
}

// Shows: A1.
#[test]
fn standstills_of_a_part_of_the_drift_end_the_lease_once_they_add_up() {
    let mut bench = Bench::new(3);
    bench.pass(6_000);
    bench.read(0, 1);
    bench.answer_all(0);
    bench.acquire(0);
    bench.answer_all(0);
    assert!(has_acquired(&bench.seen(0)));
    let mut lost = Vec::new();
    let mut stood = 0;
    while lost.is_empty() {
        stood += 4;
        assert!(stood < 100, "it goes on");
        (0..3).for_each(|node| bench.set_clock(node, stood));
        bench.read(0, stood.unsigned_abs());
        bench.answer_all(0);
        lost = losses(&bench.seen(0));
    }
    assert_eq!(lost, [Loss::ClockJump]);
    // The drift of a second is 22 ms.
    assert!((23..=32).contains(&stood), "{stood}");
}

// Shows: A1.
#[test]
fn what_the_drift_allows_for_is_no_loss() {
    let mut bench = Bench::new(3);
    bench.acquire(0);
    bench.answer_all(0);
    for node in 0..3 {
        bench.set_clock(node, 20);
    }
    bench.read(0, 1);
    bench.answer_all(0);
    assert_eq!(losses(&bench.seen(0)), []);
}

// Shows: L2.5.
#[test]
fn s11_one_server_behind_two_addresses_confirms_once() {
    let mut bench = Bench::new(3);
    bench.acquire(0);
    bench.drop_sent(0, 2);
    bench.answer_all(0);
    assert!(has_acquired(&bench.seen(0)));
    // The client does not learn that another server answers at the second address.
    bench.reroute(1, 0);
    let mut effects = Vec::new();
    while losses(&effects).is_empty() {
        assert!(bench.ms() < 2_000, "it goes on: {effects:?}");
        bench.drop_sent(0, 2);
        bench.answer_all(0);
        bench.run_until(0, bench.ms() + MS.as_millis() as u64);
        effects.extend(bench.seen(0));
    }
    let extended = |effect: &Effect| matches!(effect, Effect::Extended { .. });
    assert!(!effects.iter().any(extended), "{effects:?}");
    assert_eq!(losses(&effects), [Loss::Expired]);
}
