//! Contenders that split the votes, and a node that is slower than the others.

use redlock_proto::Effect;

use crate::clients::bench::{Bench, MS};

// Shows: T6.8.
#[test]
fn l08_an_attempt_that_splits_the_votes_does_not_keep_them_until_the_slowest_node_answers() {
    let mut bench = Bench::new(3);
    bench.wait(500 * MS);
    bench.acquire(0);
    bench.acquire(1);
    bench.pass(2);
    bench.answer_once(0, 1);
    bench.answer_once(1, 2);
    bench.answer_once(0, 2);
    assert_eq!(
        bench.locks(),
        [0, 1, 1],
        "each has one, and nobody a majority"
    );
    // The first node is slow: it is waited for as long as the others took.
    bench.run_until(0, 3);
    assert!(!bench.has_sent(0, 1), "not for less");
    bench.run_until(0, 4);
    bench.answer(0, 1);
    assert_eq!(bench.locks(), [0, 0, 1]);
    // The other has its majority without it.
    bench.answer_once(1, 1);
    bench.answer(1, 1);
    bench.answer(1, 2);
    let won = bench.seen(1);
    assert!(matches!(won[..], [Effect::Acquired { .. }]), "{won:?}");
}

#[test]
fn an_attempt_that_nobody_is_in_the_way_of_waits_for_slow_nodes() {
    let mut bench = Bench::new(3);
    bench.acquire(0);
    bench.pass(2);
    bench.answer_once(0, 1);
    bench.run_until(0, 100);
    bench.answer_once(0, 2);
    let won = bench.seen(0);
    assert!(matches!(won[..], [Effect::Acquired { .. }]), "{won:?}");
}
