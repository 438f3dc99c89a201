//! Acquires that ask a majority first.

use redlock_proto::Effect;

use crate::clients::bench::{Bench, MS};

/// Returns the nodes to which a client has sent something.
fn asked(bench: &Bench, peer: usize) -> Vec<usize> {
    (0..5).filter(|node| bench.has_sent(peer, *node)).collect()
}

fn others(nodes: &[usize]) -> Vec<usize> {
    (0..5).filter(|node| !nodes.contains(node)).collect()
}

fn has_won(bench: &mut Bench, peer: usize) -> bool {
    let seen = bench.seen(peer);
    seen.iter()
        .any(|effect| matches!(effect, Effect::Acquired { .. }))
}

#[test]
fn a_majority_is_asked_and_decides_and_is_let_go_of() {
    let mut bench = Bench::narrow(5);
    bench.acquire(0);
    let asked = asked(&bench, 0);
    assert_eq!(asked.len(), 3, "{asked:?}");
    bench.answer_all(0);
    assert!(has_won(&mut bench, 0));
    bench.release(0);
    assert_eq!(self::asked(&bench, 0), asked, "nobody else has anything");
    bench.answer_all(0);
    assert_eq!(bench.locks(), [0; 5]);
}

#[test]
fn contenders_of_a_key_meet_at_the_same_nodes_and_leave_the_others_alone() {
    let mut bench = Bench::narrow(5);
    // One of them has done more than the other.
    bench.acquire_key(0, "{bench}:lock:invoices");
    bench.answer_all(0);
    bench.acquire(0);
    let first = asked(&bench, 0);
    bench.answer_all(0);
    bench.acquire(1);
    assert_eq!(asked(&bench, 1), first);
    for node in &first {
        bench.answer(1, *node);
        assert!(others(&first).iter().all(|node| !bench.has_sent(1, *node)));
    }
    let refused = bench.seen(1);
    assert!(
        matches!(refused[..], [Effect::NotAcquired { .. }]),
        "{refused:?}"
    );
}

// Shows: T6.2.
#[test]
fn a_node_that_fails_has_the_others_asked_at_once() {
    let mut bench = Bench::narrow(5);
    bench.acquire(0);
    let first = asked(&bench, 0);
    bench.answer_once(0, first[0]);
    bench.cut(0, first[1]);
    let rest = others(&first);
    assert!(rest.iter().all(|node| bench.has_sent(0, *node)), "{rest:?}");
    bench.answer_once(0, rest[0]);
    bench.answer_once(0, rest[1]);
    assert!(has_won(&mut bench, 0));
}

// Shows: T6.2.
#[test]
fn a_contender_that_took_one_of_the_first_nodes_has_the_others_asked() {
    let mut bench = Bench::narrow(5);
    bench.wait(500 * MS);
    bench.acquire(0);
    bench.acquire(1);
    let first = asked(&bench, 0);
    bench.answer_once(0, first[0]);
    bench.answer_once(0, first[1]);
    bench.answer_once(1, first[2]);
    bench.answer_once(0, first[2]);
    // Two of three that were asked granted, and the other two can make it a majority.
    let rest = others(&first);
    assert!(rest.iter().all(|node| bench.has_sent(0, *node)), "{rest:?}");
    bench.answer_once(0, rest[0]);
    assert!(has_won(&mut bench, 0));
}

// Shows: T6.2.
#[test]
fn l01_a_hung_node_is_waited_for_no_longer_than_nodes_take_and_not_asked_first_again() {
    let mut bench = Bench::narrow(5);
    bench.acquire(0);
    let first = asked(&bench, 0);
    let (hung, rest) = (first[2], others(&first));
    bench.answer_once(0, first[0]);
    bench.answer_once(0, first[1]);
    bench.run_until(0, 1);
    assert!(rest.iter().all(|node| !bench.has_sent(0, *node)));
    bench.run_until(0, 3);
    bench.answer_once(0, rest[0]);
    assert!(has_won(&mut bench, 0), "without the node that hangs");
    bench.release(0);
    bench.answer_once(0, rest[1]);
    for node in others(&[hung]) {
        bench.answer(0, node);
    }
    assert!(bench.has_sent(0, hung), "it says nothing");
    bench.drop_sent(0, hung);
    bench.acquire(0);
    assert!(!bench.has_sent(0, hung), "it is late");
    assert_eq!(asked(&bench, 0).len(), 3);
}

// Shows: T6.2.
#[test]
fn a_slow_node_that_answers_others_has_the_rest_asked_after_half_of_the_time() {
    let mut bench = Bench::adaptive(3);
    bench.acquire(1);
    let first = asked(&bench, 1);
    bench.answer_once(1, first[0]);
    bench.acquire(0);
    bench.answer_once(0, first[0]);
    let rest = (0..3).find(|node| !first.contains(node)).unwrap();
    let mut run_until = |ms| {
        while bench.ms() < ms {
            bench.awaits(0, first[1]);
            bench.run_until(0, bench.ms() + 1);
        }
        bench.has_sent(0, rest)
    };
    assert!(!run_until(99), "one refusal, and a node that answers");
    assert!(run_until(101));
}

// Shows: T6.3.
#[test]
fn a_lease_that_lasts_is_given_to_the_other_nodes_too() {
    let mut bench = Bench::narrow(5);
    bench.acquire(0);
    bench.answer_all(0);
    assert!(has_won(&mut bench, 0));
    assert_eq!(bench.locks().iter().filter(|lock| **lock > 0).count(), 3);
    let at = bench.ms();
    bench.run_until(0, at + 99);
    assert!(asked(&bench, 0).is_empty(), "most are over by then");
    bench.run_until(0, at + 101);
    bench.answer_all(0);
    assert_eq!(bench.locks().iter().filter(|lock| **lock > 0).count(), 5);
    // From then on it is extended like any other.
    bench.run_until(0, at + 250);
    assert!(asked(&bench, 0).is_empty());
}

/// Its counters differed, so those that had voted were asked to write the greatest one back, and the others for their votes.
// Shows: T6.6.
#[test]
fn a_lease_whose_counter_was_written_back_is_given_to_the_other_nodes_all_the_same() {
    let mut bench = Bench::narrow(5);
    bench.acquire(0);
    let first = asked(&bench, 0);
    bench.answer_all(0);
    bench.release(0);
    bench.answer_all(0);
    bench.seen(0);
    bench.count_ahead(first[1]);
    bench.acquire(0);
    bench.answer_all(0);
    assert!(has_won(&mut bench, 0));
    assert_eq!(bench.locks().iter().filter(|lock| **lock > 0).count(), 5);
    // So it outlasts two of the nodes that voted.
    bench.cut(0, first[0]);
    bench.cut(0, first[1]);
    bench.live(0, 1_200);
    let seen = bench.seen(0);
    let is_lost = |effect: &Effect| matches!(effect, Effect::Lost { .. });
    assert!(!seen.iter().any(is_lost), "{seen:?}");
}

#[test]
fn a_claim_asks_all_nodes() {
    let mut bench = Bench::narrow(5);
    bench.claim(0, 0);
    assert_eq!(asked(&bench, 0).len(), 5);
}

#[test]
fn l02_with_too_few_nodes_of_use_all_are_asked() {
    let mut bench = Bench::narrow(5);
    for node in 0..3 {
        bench.cut(0, node);
    }
    bench.sent(0);
    bench.acquire(0);
    // The nodes that are not connected have failed at once.
    assert_eq!(asked(&bench, 0), [3, 4]);
    let failed = bench.seen(0);
    assert!(
        matches!(failed[..], [Effect::NotAcquired { .. }]),
        "{failed:?}"
    );
}

#[test]
fn a_client_asks_a_majority_first() {
    let mut bench = Bench::adaptive(5);
    bench.acquire(0);
    assert_eq!(asked(&bench, 0).len(), 3);
}

// Shows: T6.2.
#[test]
fn an_attempt_that_asked_more_nodes_ends_at_the_time_limit_of_all() {
    let mut bench = Bench::narrow(5);
    bench.acquire(0);
    bench.run_until(0, 199);
    assert!(bench.seen(0).is_empty(), "nodes may answer yet");
    bench.run_until(0, 201);
    let failed = bench.seen(0);
    assert!(
        matches!(failed[..], [Effect::NotAcquired { .. }]),
        "{failed:?}"
    );
}
