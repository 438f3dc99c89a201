//! A client whose callers wait in line for a key.

use redlock_proto::{Effect, Quarantine, Request, Verb};

use crate::clients::bench::{Bench, TTL};

/// Makes clients that may wait for a key that the second one has for long.
fn held() -> Bench {
    let mut bench = Bench::with(&[0; 3], Quarantine::new(60 * TTL, 0.01));
    bench.ttl = 50 * TTL;
    bench.wait(100 * TTL);
    bench.acquire(1);
    bench.answer_all(1);
    bench
}

/// Has a caller wait, whose client hears nodes soon.
fn wait(bench: &mut Bench) {
    bench.acquire(0);
    bench.live(0, 300);
    bench.listen(0);
}

/// Returns how many acquires and extensions of the first client a node has not answered.
fn asked(bench: &Bench, node: usize) -> [usize; 2] {
    let mut counts = [0; 2];
    for request in bench.unanswered(0, node) {
        match request {
            Request::Lock {
                verb: Verb::Acquire { .. },
                ..
            } => counts[0] += 1,
            Request::Lock {
                verb: Verb::Extend { .. },
                ..
            } => counts[1] += 1,
            _ => {}
        }
    }
    counts
}

/// A link bears with a node for longer than that if `node_timeout` is long.
// Shows: R9.7.
#[test]
fn a_caller_asks_again_though_a_node_says_after_the_limit_that_it_had_no_sign_of_life() {
    let mut bench = held();
    // The second in line asks rarely.
    bench.acquire(1);
    bench.live(1, 600);
    wait(&mut bench);
    bench.live(0, 2_200);
    let stood_still = bench.ms();
    while bench.ms() < stood_still + 3_500 {
        bench.run_until(0, bench.ms() + 5);
        bench.answer(0, 0);
        bench.answer(0, 1);
    }
    assert_eq!(asked(&bench, 2), [0, 0]);
    bench.answer(0, 2);
    bench.run_until(0, bench.ms() + 150);
    assert_eq!(asked(&bench, 2), [1, 0]);
}

/// A node reads and writes its line for each question.
// Shows: R9.8.
#[test]
fn the_first_in_line_asks_again_only_once_the_key_is_free() {
    let mut bench = held();
    wait(&mut bench);
    bench.live(0, 9_000);
    let before = bench.ms();
    let mut counts = [0; 2];
    while bench.ms() < before + 10_000 {
        bench.run_until(0, bench.ms() + 5);
        let [asks, rechecks] = asked(&bench, 0);
        counts = [counts[0] + asks, counts[1] + rechecks];
        bench.answer_all(0);
    }
    assert!(counts[0] == 0 && (2..=4).contains(&counts[1]), "{counts:?}");
    // It goes without a release.
    for node in &mut bench.nodes {
        node.drop_lock(&Bench::lock());
    }
    bench.live(0, 3_600);
    let seen = bench.seen(0);
    let is_won = |effect: &Effect| matches!(effect, Effect::Acquired { .. });
    assert!(seen.iter().any(is_won), "{seen:?}");
}
