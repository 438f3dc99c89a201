//! Claims: what nodes grant, what they are asked to remember, and what becomes of a claim that too few can.

use std::time::Duration;

use redlock_proto::{Effect, JobVerb, NotClaimed, Request, Word};

use crate::clients::{
    PAUSE,
    bench::{Bench, EARLY, MS, START_WITHIN, TTL},
    came_of, refused, won,
};

// Shows: T4.3.
#[test]
fn a_tick_is_handed_out_only_when_a_majority_remembers_it() {
    let mut bench = Bench::new(3);
    bench.claim(0, 0);
    bench.answer(0, 0);
    bench.answer(0, 1);
    assert!(
        bench.seen(0).is_empty(),
        "they have granted it, and no more"
    );
    assert!(
        bench
            .nodes
            .iter()
            .all(|node| node.runs(&Bench::job()).is_empty())
    );
    bench.answer(0, 0);
    assert!(bench.seen(0).is_empty(), "one remembers it");
    bench.answer(0, 1);
    let effects = bench.seen(0);
    assert!(won(&effects), "{effects:?}");
    assert_eq!(bench.watermarks(), [Some(0), Some(0), None]);
}

// Shows: T4.6.
#[test]
fn a_tick_that_was_claimed_is_nobodys_any_more_and_neither_is_an_earlier_one() {
    let mut bench = Bench::new(3);
    bench.pass(1_000);
    bench.claim(0, 1_000);
    bench.answer_all(0);
    assert!(won(&bench.seen(0)));
    bench.finish(0);
    bench.answer_all(0);
    for tick in [1_000, 500, 0] {
        bench.claim(1, tick);
        bench.answer_all(1);
        let NotClaimed::Passed { watermark, last } = refused(&bench.seen(1)) else {
            panic!("{tick}")
        };
        assert_eq!(watermark, Bench::tick(1_000));
        let last = last.expect("it can be read");
        assert_eq!(last.replica, Word::new("replica-0").unwrap());
    }
    bench.claim(1, 1_001);
    bench.answer_all(1);
    let effects = bench.seen(1);
    let Effect::Acquired {
        last: Some(last), ..
    } = came_of(&effects)
    else {
        panic!("{effects:?}")
    };
    assert_eq!((last.tick, last.fingerprint), (Bench::tick(1_000), 7));
}

#[test]
fn one_node_that_has_seen_the_tick_pass_ends_the_claim_at_once() {
    let mut bench = Bench::new(3);
    bench.claim(0, 0);
    bench.answer(0, 0);
    bench.answer(0, 1);
    bench.answer(0, 0);
    // The first client is gone now, and so are its locks.
    bench.pass(2 * TTL.as_millis() as u64);
    bench.claim(1, 0);
    bench.answer(1, 0);
    assert!(matches!(refused(&bench.seen(1)), NotClaimed::Passed { .. }));
    bench.answer_all(1);
    assert_eq!(
        bench.locks(),
        [0, 0, 0],
        "what the others granted is given back"
    );
}

// Shows: T4.2.
#[test]
fn the_nodes_clocks_say_whether_it_is_time() {
    let edge = EARLY.as_millis() as i64;
    for (ahead, early_by) in [
        ([0, 0, 0], Some(1)),
        ([1, 0, 0], Some(1)),
        ([1, 1, 0], None),
        ([-5, 300, -3], Some(4)),
    ] {
        let mut bench = Bench::with_clocks(&ahead);
        bench.claim(0, edge as u64 + 1);
        bench.answer_all(0);
        let effects = bench.seen(0);
        match early_by {
            None => assert!(won(&effects), "{ahead:?}"),
            Some(ms) => {
                let by = Duration::from_millis(ms);
                assert_eq!(refused(&effects), NotClaimed::TooEarly { by }, "{ahead:?}");
                assert_eq!(bench.locks(), [0, 0, 0]);
            }
        }
    }
    for (ahead, late) in [([0, 0, 0], true), ([-1, -1, 0], false), ([-1, 0, 0], true)] {
        let mut bench = Bench::with_clocks(&ahead);
        bench.pass(START_WITHIN.as_millis() as u64 + 1);
        bench.claim(0, 0);
        bench.answer_all(0);
        let effects = bench.seen(0);
        if !late {
            assert!(won(&effects), "{ahead:?}");
        } else {
            assert_eq!(
                refused(&effects),
                NotClaimed::TooLate { by: MS },
                "{ahead:?}"
            );
        }
    }
}

/// A clock that is an hour off would give ticks away that are an hour off.
// Shows: T4.2.
#[test]
fn a_node_whose_clock_disagrees_has_no_say() {
    let hour = 3_600_000;
    let mut bench = Bench::with_clocks(&[hour, 0, 0]);
    bench.claim(0, hour as u64);
    bench.answer_all(0);
    assert!(matches!(
        refused(&bench.seen(0)),
        NotClaimed::TooEarly { .. }
    ));
    bench.claim(0, 0);
    bench.answer_all(0);
    assert!(won(&bench.seen(0)));
    assert_eq!(bench.watermarks(), [None, Some(0), Some(0)]);
    bench.finish(0);
    bench.answer_all(0);
    // A client leaves the lock to others for a moment after a run.
    bench.pass(25);
    // That it is too late by that clock is not why there is no majority.
    bench.claim(0, 1);
    bench.drop_sent(0, 2);
    bench.answer_all(0);
    bench.time_out(0);
    assert!(matches!(
        came_of(&bench.seen(0)),
        Effect::NotAcquired { .. }
    ));
}

// Shows: A5.
#[test]
fn a_node_is_told_to_vote_only_when_its_clock_is_right() {
    let hour = 3_600_000;
    let mut bench = Bench::with_clocks(&[0, 0, -hour]);
    bench.nodes[2].flush();
    bench.sit_out(2);
    let since = |bench: &Bench| bench.horizon(2);
    assert_eq!(since(&bench), None, "its clock is an hour behind");
    bench.set_clock(2, 0);
    bench.sit_out(2);
    assert!(since(&bench).is_some_and(|since| since > bench.ms() / 2));
}

// Shows: T4.7.
#[test]
fn a_node_that_lost_its_data_gives_no_tick_away_that_it_may_have_forgotten() {
    let mut bench = Bench::new(3);
    bench.claim(0, 0);
    for _ in 0..2 {
        bench.answer(0, 0);
        bench.answer(0, 1);
    }
    assert!(won(&bench.seen(0)));
    bench.finish(0);
    bench.answer_all(0);
    // The window of the tick is longer than the quarantine of the one node that both majorities share.
    bench.nodes[1].flush();
    bench.sit_out(1);
    let now = bench.ms();
    assert!(now < START_WITHIN.as_millis() as u64);
    bench.drop_sent(1, 0);
    bench.claim(1, 0);
    bench.drop_sent(1, 0);
    bench.answer_all(1);
    bench.time_out(1);
    assert!(!matches!(came_of(&bench.seen(1)), Effect::Acquired { .. }));
    assert_eq!(bench.watermarks(), [Some(0), None, None]);
    // A tick that could not be claimed before it voted again is no problem.
    bench.pass(EARLY.as_millis() as u64 + 1);
    let now = bench.ms();
    bench.claim(1, now);
    bench.answer_all(1);
    assert!(won(&bench.seen(1)));
}

// Shows: T4.13.
#[test]
fn a_commit_that_is_not_heard_of_is_asked_for_again_while_the_lease_lasts() {
    let mut bench = Bench::new(3);
    bench.claim(0, 0);
    bench.answer_all_once(0);
    // The nodes that have granted it remember it, and their answers are lost.
    bench.run_unheard(0);
    bench.time_out(0);
    assert!(bench.sent(0).is_empty(), "not without a pause");
    assert!(bench.seen(0).is_empty(), "nor is it given up");
    bench.run_until(0, bench.ms() + PAUSE);
    bench.answer_all(0);
    let effects = bench.seen(0);
    assert!(won(&effects), "{effects:?}");
    assert_eq!(bench.watermarks(), [Some(0); 3]);
    assert_eq!(bench.nodes[0].runs(&Bench::job()).len(), 1);
}

// Shows: T4.3.
#[test]
fn a_tick_that_too_few_remember_is_not_started_and_nobody_remembers_it_then() {
    let mut bench = Bench::new(3);
    bench.claim(0, 0);
    bench.answer_all_once(0);
    bench.answer(0, 0);
    assert_eq!(bench.watermarks(), [Some(0), None, None]);
    // No majority can be reached, so no other client can have the tick either: it is asked for while the lease lasts.
    bench.cut(0, 1);
    bench.cut(0, 2);
    let mut effects = Vec::new();
    while effects.is_empty() {
        assert!(bench.ms() < 1_000, "the lease is over");
        bench.answer(0, 0);
        bench.run_until(0, bench.ms() + 1);
        effects = bench.seen(0);
    }
    assert!(bench.ms() > 600, "it lasts so long: {}", bench.ms());
    assert_eq!(refused(&effects), NotClaimed::Unconfirmed);
    bench.answer_all(0);
    assert_eq!(bench.locks(), [0, 1, 1]);
    assert_eq!(bench.watermarks(), [None; 3]);
}

#[test]
fn a_claim_that_nobody_waits_for_any_more_leaves_no_lock() {
    for answers in 0..4 {
        let mut bench = Bench::new(3);
        bench.claim(0, 0);
        for node in [0, 1, 0].into_iter().take(answers) {
            bench.answer(0, node);
        }
        bench.abandon(0);
        bench.answer_all(0);
        assert!(bench.seen(0).is_empty());
        assert_eq!(bench.locks(), [0, 0, 0], "after {answers}");
        // The next client gets the tick, whichever nodes remembered it.
        bench.claim(1, 0);
        bench.answer_all(1);
        assert!(won(&bench.seen(1)), "after {answers}");
    }
}

#[test]
fn a_commit_that_nobody_waits_for_any_more_is_not_asked_for_again() {
    let mut bench = Bench::new(3);
    bench.claim(0, 0);
    bench.answer_all_once(0);
    bench.run_unheard(0);
    bench.time_out(0);
    bench.abandon(0);
    bench.answer_all(0);
    assert_eq!(bench.locks(), [0, 0, 0]);
    bench.run_until(0, bench.ms() + 2 * PAUSE);
    assert!(bench.sent(0).is_empty() && bench.seen(0).is_empty());
}

#[test]
fn a_lock_that_another_holds_is_waited_for_and_burns_no_tick() {
    let mut bench = Bench::new(3);
    bench.claim(0, 0);
    bench.answer_all(0);
    assert!(won(&bench.seen(0)));
    bench.pass(500);
    bench.claim(1, 500);
    bench.answer_all(1);
    assert!(matches!(
        came_of(&bench.seen(1)),
        Effect::NotAcquired { .. }
    ));
    assert_eq!(bench.watermarks(), [Some(0); 3]);
    bench.finish(0);
    bench.answer_all(0);
    bench.claim(1, 500);
    bench.answer_all(1);
    assert!(won(&bench.seen(1)));
}

// Shows: T4.13.
#[test]
fn a_late_commit_does_not_touch_what_another_has_claimed() {
    let mut bench = Bench::new(3);
    bench.claim(0, 0);
    bench.answer_all_once(0);
    let late = bench.sent(0);
    assert!(matches!(
        &late[0].2,
        Request::Job {
            verb: JobVerb::Commit { .. },
            ..
        }
    ));
    bench.pass(2 * TTL.as_millis() as u64);
    bench.claim(1, 1_000);
    bench.answer_all(1);
    assert!(won(&bench.seen(1)));
    let before: Vec<_> = bench
        .nodes
        .iter()
        .map(|node| node.runs(&Bench::job()).to_vec())
        .collect();
    for (node, _, request) in late {
        bench.run(node, &[request]);
    }
    let after: Vec<_> = bench
        .nodes
        .iter()
        .map(|node| node.runs(&Bench::job()).to_vec())
        .collect();
    assert_eq!(before, after);
}

#[test]
fn a_window_that_opens_during_the_wait_is_waited_for() {
    let mut bench = Bench::new(3);
    let opens = 70;
    bench.wait(Duration::from_millis(opens + 1));
    bench.claim(0, opens + EARLY.as_millis() as u64);
    bench.answer_all(0);
    assert!(bench.seen(0).is_empty());
    assert_eq!(bench.locks(), [0, 0, 0]);
    bench.run_until(0, opens - 1);
    assert!(bench.sent(0).is_empty(), "it knows when to ask again");
    bench.run_until(0, opens);
    bench.answer_all(0);
    assert!(won(&bench.seen(0)));
    // What opens later is not.
    bench.claim(0, bench.ms() + 2 * opens + EARLY.as_millis() as u64);
    bench.answer_all(0);
    let by = Duration::from_millis(2 * opens);
    assert_eq!(refused(&bench.seen(0)), NotClaimed::TooEarly { by });
}

#[test]
fn what_is_missing_for_a_majority_says_why_there_is_none() {
    // One cannot be heard, and one more is too early.
    let mut bench = Bench::with_clocks(&[0, 5, 5]);
    bench.drop_sent(0, 2);
    bench.claim(0, EARLY.as_millis() as u64 + 5);
    bench.drop_sent(0, 2);
    bench.answer_all(0);
    assert!(bench.seen(0).is_empty());
    bench.time_out(0);
    assert_eq!(refused(&bench.seen(0)), NotClaimed::TooEarly { by: 5 * MS });
    // Two cannot be heard, which is reason enough.
    bench.claim(0, bench.ms() + 2 * EARLY.as_millis() as u64);
    bench.drop_sent(0, 1);
    bench.drop_sent(0, 2);
    bench.answer_all(0);
    bench.time_out(0);
    assert!(matches!(
        came_of(&bench.seen(0)),
        Effect::NotAcquired { .. }
    ));
}
