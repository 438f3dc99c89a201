//! What a node that lost its data may have forgotten: up to what its clock showed when it agreed with a majority's.

use redlock_proto::{Effect, NodeVerb, Request};

use crate::clients::{
    bench::{Bench, START_WITHIN, Sent},
    came_of, won,
};

const HOUR: i64 = 3_600_000;

/// Makes a bench in which a tick was started by node 0 and node 1, and node 1 has lost its data since.
fn started_and_lost() -> Bench {
    let mut bench = Bench::new(3);
    bench.claim(0, 0);
    for _ in 0..2 {
        bench.answer(0, 0);
        bench.answer(0, 1);
    }
    assert!(won(&bench.seen(0)));
    bench.finish(0);
    bench.answer_all(0);
    bench.nodes[1].flush();
    bench
}

/// Returns whether the other client can start the tick again, with node 1 and node 2.
fn starts_again(bench: &mut Bench) -> bool {
    assert!(u128::from(bench.ms()) < START_WITHIN.as_millis());
    bench.drop_sent(1, 0);
    bench.claim(1, 0);
    bench.drop_sent(1, 0);
    bench.answer_all(1);
    bench.time_out(1);
    matches!(came_of(&bench.seen(1)), Effect::Acquired { .. })
}

fn is_opening((_, _, request): &Sent) -> bool {
    matches!(request, Request::Node(NodeVerb::Open { .. }))
}

// Shows: T4.8.
#[test]
fn a_clock_that_is_set_back_before_its_node_is_told_to_vote_brings_no_tick_back() {
    let mut bench = started_and_lost();
    let mut told = bench.sit_out_but(1, is_opening);
    let (node, _, opening) = told.pop().expect("it was told to vote");
    bench.set_clock(1, -HOUR);
    bench.run(node, &[opening]);
    bench.set_clock(1, 0);
    assert!(!starts_again(&mut bench));
}

// Shows: A5.
#[test]
fn a_node_that_has_not_said_what_it_is_is_told_to_vote_only_when_its_clock_is_right() {
    let mut bench = started_and_lost();
    bench.set_clock(1, -HOUR);
    for peer in 0..2 {
        bench.reconnect_unexamined(peer, 1);
    }
    bench.sit_out(1);
    assert_eq!(bench.horizon(1), None, "its clock is an hour behind");
    bench.set_clock(1, 0);
    bench.sit_out(1);
    assert!(bench.horizon(1).is_some());
    assert!(!starts_again(&mut bench));
}
