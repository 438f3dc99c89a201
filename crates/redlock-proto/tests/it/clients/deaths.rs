//! A minority of nodes that dies, or falls silent, at any moment of a claim or of an acquire.

use redlock_proto::{Effect, FailureKind};

use crate::clients::{
    bench::{Bench, MS},
    won,
};

/// How a node is lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Loss {
    /// Its connection breaks.
    Dies,
    /// It does not answer any longer.
    Hangs,
}

/// Lets one client attempt something over this number of nodes; the `lost` nodes are lost after `after` answers.
///
/// The answers come from one node after another, from `first` on.
///
/// Returns what came of it, without any wait, and whether the nodes were still there when it came.
fn attempt(
    nodes: usize,
    first: usize,
    lost: &[usize],
    (loss, after): (Loss, usize),
    begin: fn(&mut Bench),
) -> (Vec<Effect>, bool) {
    let mut bench = Bench::new(nodes);
    begin(&mut bench);
    let mut gone = false;
    let mut seen = Vec::new();
    let mut answers = 0;
    loop {
        if answers == after {
            gone = true;
            if loss == Loss::Dies {
                for node in lost {
                    bench.cut(0, *node);
                }
            }
        }
        seen.extend(bench.seen(0));
        let is_there = |node: &usize| !(gone && lost.contains(node));
        let order = (0..nodes).map(|step| (first + step) % nodes);
        let Some(next) = order.filter(is_there).find(|node| bench.has_sent(0, *node)) else {
            return (seen, !gone);
        };
        bench.answer_once(0, next);
        answers += 1;
    }
}

/// Checks every minority of three and of five nodes, in every order of answers, lost after every number of answers.
fn for_every_death(begin: fn(&mut Bench), check: impl Fn(&[Effect])) {
    let mut deaths = 0;
    for (nodes, minorities) in [
        (3, &[&[0][..], &[1], &[2]][..]),
        (5, &[&[0, 1][..], &[1, 4], &[2, 3], &[3]]),
    ] {
        for lost in minorities {
            for first in 0..nodes {
                for loss in [Loss::Dies, Loss::Hangs] {
                    for after in 0.. {
                        let (effects, was_over) = attempt(nodes, first, lost, (loss, after), begin);
                        check(&effects);
                        if was_over {
                            break;
                        }
                        deaths += 1;
                    }
                }
            }
        }
    }
    assert!(deaths > 200, "{deaths}");
}

// Shows: T4.14.
#[test]
fn a_minority_that_dies_at_any_moment_neither_fails_nor_delays_a_claim() {
    let begin = |bench: &mut Bench| bench.claim(0, 0);
    for_every_death(begin, |effects| assert!(won(effects), "{effects:?}"));
}

// Shows: T6.6.
#[test]
fn a_minority_that_dies_at_any_moment_neither_fails_nor_delays_an_acquire() {
    // The first node has counted further than the others, so that its token must be written back.
    let begin = |bench: &mut Bench| {
        bench.count_ahead(0);
        bench.acquire(0);
    };
    for_every_death(begin, |effects| {
        assert!(matches!(effects, [Effect::Acquired { .. }]), "{effects:?}");
    });
}

// Shows: T4.12.
#[test]
fn a_claim_that_can_no_longer_be_confirmed_gives_its_lock_and_its_tick_back_at_once() {
    let mut bench = Bench::new(3);
    bench.wait(50 * MS);
    // Another client has the third node.
    bench.claim(1, 0);
    bench.answer_once(1, 2);
    bench.claim(0, 0);
    bench.answer_all_once(0);
    bench.answer_once(0, 0);
    assert_eq!(bench.watermarks(), [Some(0), None, None]);
    bench.cut(0, 1);
    // No time has passed.
    bench.answer(0, 0);
    assert!(bench.seen(0).is_empty(), "it is tried again");
    assert_eq!(bench.watermarks(), [None; 3]);
    assert_eq!(bench.locks()[0], 0);
    // The other client gives up, and the first one to come has the tick.
    bench.abandon(1);
    bench.answer_once(1, 2);
    bench.run_until(0, bench.ms() + 20);
    bench.answer(0, 0);
    bench.answer(0, 2);
    bench.answer(0, 0);
    bench.answer(0, 2);
    assert!(won(&bench.seen(0)));
}

// Shows: T3.4.
#[test]
fn a_late_vote_with_a_greater_counter_than_the_token_has_no_say() {
    let mut bench = Bench::new(3);
    bench.count_ahead(2);
    bench.wait(50 * MS);
    bench.claim(0, 0);
    bench.answer_once(0, 0);
    bench.answer_once(0, 1);
    // The node has given that number to another client, perhaps after this claim's votes.
    bench.answer_once(0, 2);
    assert!(!bench.has_sent(0, 2), "it is not asked");
    bench.answer_once(0, 0);
    bench.cut(0, 1);
    bench.answer(0, 0);
    assert!(bench.seen(0).is_empty());
    // The next attempt has seen how far the node has counted.
    bench.run_until(0, bench.ms() + 20);
    for node in [0, 2, 0, 2] {
        bench.answer(0, node);
    }
    assert!(won(&bench.seen(0)));
}

#[test]
fn a_late_vote_that_decides_a_round_of_confirmation_leaves_nothing_of_it() {
    let mut bench = Bench::new(3);
    for turn in 0..3 {
        bench.count_ahead(2);
        bench.claim(0, turn);
        bench.answer_once(0, 0);
        bench.answer_once(0, 1);
        // One of the two that have granted confirms, and the other is cut off.
        bench.answer_once(0, 0);
        bench.cut(0, 1);
        // The third has counted too far to confirm in its place.
        bench.answer_once(0, 2);
        bench.abandon(0);
        bench.connect(0, 1);
        bench.live(0, 3_000);
        bench.answer_all(0);
        assert_eq!(bench.open_requests(0), 0, "after {} turns", turn + 1);
    }
}

// Shows: T6.9.
#[test]
fn a_majority_that_confirms_too_late_does_not_mean_another_holder() {
    let mut bench = Bench::new(3);
    // The token must be written back, and a stranger has the key at the third node.
    bench.count_ahead(0);
    bench.take(2, 1);
    bench.acquire(0);
    bench.answer_all_once(0);
    assert!(bench.seen(0).is_empty());
    // The keys last for longer than the lease, by the drift.
    bench.pass(985);
    bench.answer_all_once(0);
    let kinds: Vec<FailureKind> = (bench.seen(0).iter())
        .filter_map(|effect| match effect {
            Effect::NotAcquired { failure, .. } => failure.as_ref().map(|failure| failure.kind),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, [FailureKind::Expired]);
}
