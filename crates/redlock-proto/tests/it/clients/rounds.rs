//! What becomes of single answers, and of searches.

use std::time::Duration;

use redlock_proto::{Effect, FailureKind};

use crate::clients::{
    bench::{Bench, MS},
    came_of, won,
};

// Shows: T1.2.
#[test]
fn an_answer_that_is_told_twice_is_heard_once() {
    let mut bench = Bench::new(3);
    bench.acquire(0);
    bench.answer_times(0, 0, 3);
    assert!(bench.seen(0).is_empty(), "one node is no majority");
    assert_eq!(bench.open_requests(0), 2, "two have not answered");
    bench.answer(0, 1);
    assert!(won(&bench.seen(0)));
    let (node, round, _) = bench.sent(0).remove(0);
    bench.lose(0, node, round);
    assert_eq!(bench.open_requests(0), 0);
}

/// Two of three nodes answer, the second one `ms` milliseconds later, and the lease may be held for `longest`.
fn acquired_slowly(longest: Duration, ms: u64) -> Bench {
    let mut bench = Bench::new(3);
    bench.max_hold = Some(longest);
    bench.acquire(0);
    bench.answer(0, 0);
    bench.pass(ms);
    bench.answer(0, 1);
    bench
}

// Shows: T2.5.
#[test]
fn a_lease_that_has_been_held_for_its_longest_before_it_is_won_is_not_handed_out() {
    let mut bench = acquired_slowly(100 * MS, 100);
    let seen = bench.seen(0);
    let Effect::NotAcquired { failure, .. } = came_of(&seen) else {
        panic!("{seen:?}");
    };
    let kind = failure.as_ref().map(|failure| failure.kind);
    assert_eq!(kind, Some(FailureKind::Expired));
    let released: Vec<usize> = bench.sent(0).iter().map(|(node, ..)| *node).collect();
    assert_eq!(released, [2, 0, 1, 2]);
}

#[test]
fn a_lease_may_be_asked_to_end_before_the_least_validity() {
    let mut bench = acquired_slowly(10 * MS, 9);
    assert!(won(&bench.seen(0)));
}

/// A round of which only one node has answered ends after a later one, by its time limit.
// Shows: T5.1.
#[test]
fn what_a_node_said_before_it_was_healed_is_not_believed_after() {
    let mut bench = Bench::new(3);
    bench.acquire(0);
    bench.answer_all(0);
    bench.nodes[2].drop_locks();

    bench.pass(10);
    bench.extend(0);
    bench.answer(0, 2);
    assert_eq!(bench.sent(0).len(), 2, "these have not arrived");
    bench.pass(10);
    bench.extend(0);
    bench.answer_all_once(0);
    bench.answer(0, 2);
    assert_eq!(bench.locks()[2], 1, "it was healed");

    bench.pass(190);
    bench.due(0);
    drop(bench.sent(0));
    bench.release(0);
    let released: Vec<usize> = bench.sent(0).iter().map(|(node, ..)| *node).collect();
    assert_eq!(released, [0, 1, 2]);
}

#[test]
fn l08_a_search_for_a_floor_that_finds_none_is_not_begun_again_at_once() {
    let mut bench = Bench::new(3);
    // The other nodes are down, so the client cannot tell how far the counters had come.
    bench.cut(0, 1);
    bench.cut(0, 2);
    bench.nodes[0].flush();
    let mut asked = 0;
    for _ in 0..2_000 {
        bench.pass(10);
        bench.due(0);
        while bench.has_sent(0, 0) {
            asked += bench.unanswered(0, 0).count();
            assert!(asked < 10_000, "it goes on without a pause");
            bench.answer(0, 0);
        }
    }
    // In 20 s: a look each 31 ms, and a search with each of them at most.
    assert!((600..=1_400).contains(&asked), "{asked} requests");
}
