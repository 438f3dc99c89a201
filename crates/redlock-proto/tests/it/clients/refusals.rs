//! Ticks that may have been forgotten, and ticks that come too soon after a run that was cut short.

use std::time::Duration;

use redlock_proto::{NotAfter, NotClaimed, Word};

use crate::clients::{
    bench::{Bench, EARLY, START_WITHIN, TTL},
    refused, won,
};

#[test]
fn a_tick_that_a_majority_may_have_forgotten_is_settled_at_once_and_one_that_others_may_grant_says_so()
 {
    for (flushed, for_good) in [(vec![1], false), (vec![1, 2], true)] {
        let mut bench = Bench::new(3);
        let tick = bench.ms();
        for node in flushed {
            bench.nodes[node].flush();
            bench.sit_out(node);
        }
        assert!(bench.ms() < START_WITHIN.as_millis() as u64);
        bench.wait(if for_good { TTL } else { Duration::ZERO });
        for node in 0..3 {
            bench.drop_sent(1, node);
        }
        bench.claim(1, tick);
        bench.answer(1, 1);
        if for_good {
            bench.answer(1, 2);
        } else {
            bench.answer(1, 0);
            bench.drop_sent(1, 2);
            bench.time_out(1);
        }
        let forgotten = NotClaimed::Forgotten { for_good };
        assert_eq!(refused(&bench.seen(1)), forgotten);
    }
}

/// Two nodes have the lock of another claim for now, and one of the other three has lost its data.
#[test]
fn a_node_that_has_the_lock_of_another_claim_has_forgotten_nothing() {
    let mut bench = Bench::new(5);
    let tick = bench.ms();
    bench.nodes[0].flush();
    bench.sit_out(0);
    bench.claim(0, tick);
    for node in [1, 2] {
        bench.answer(0, node);
    }
    bench.wait(TTL);
    for node in 0..5 {
        bench.drop_sent(1, node);
    }
    bench.claim(1, tick);
    for node in [0, 1, 2] {
        bench.answer(1, node);
    }
    assert!(bench.seen(1).is_empty(), "four nodes know the tick");
    bench.abandon(0);
    bench.answer_all(0);
    bench.live(1, TTL.as_millis() as u64 / 2);
    assert!(won(&bench.seen(1)));
}

/// The attempt is decided with the first refusal then, before a majority has shown its clocks in it.
#[test]
fn a_node_that_is_down_does_not_hide_why_the_others_refuse() {
    let mut bench = Bench::new(3);
    let tick = bench.ms();
    bench.cut(1, 0);
    for node in [1, 2] {
        bench.nodes[node].flush();
        bench.sit_out(node);
    }
    bench.claim(1, tick);
    bench.answer(1, 1);
    let for_good = false;
    assert_eq!(refused(&bench.seen(1)), NotClaimed::Forgotten { for_good });
    bench.answer_all(1);
    let early = bench.ms() + 2 * EARLY.as_millis() as u64;
    bench.claim(1, early);
    bench.answer(1, 2);
    let refused = refused(&bench.seen(1));
    assert!(
        matches!(refused, NotClaimed::TooEarly { .. }),
        "{refused:?}"
    );
}

// Shows: R6.2.
#[test]
fn a_tick_is_not_claimed_after_a_run_that_was_cut_short_until_that_is_settled() {
    let not_after = |settled| {
        Some(NotAfter {
            outcomes: [Word::new("lost").unwrap()].into(),
            settled,
        })
    };
    for (outcome, is_cut_short) in [(None, true), (Some("lost"), true), (Some("ok"), false)] {
        let mut bench = Bench::new(3);
        bench.not_after = not_after(None);
        bench.claim(0, 0);
        bench.answer_all(0);
        assert!(won(&bench.seen(0)), "a first run comes after none");
        match outcome {
            // Its process is killed, and its lease ends.
            None => bench.pass(2 * TTL.as_millis() as u64),
            Some(word) => bench.finish_as(0, word),
        }
        bench.answer_all(0);
        let tick = bench.ms() + 1;
        bench.claim(1, tick);
        bench.answer_all(1);
        let effects = bench.seen(1);
        if !is_cut_short {
            assert!(won(&effects), "{outcome:?}");
            continue;
        }
        let NotClaimed::CutShort { last } = refused(&effects) else {
            panic!("{effects:?}")
        };
        assert_eq!(last.tick, Bench::tick(0));
        assert_eq!(bench.locks(), [0, 0, 0], "what was granted is given back");
        assert!(
            bench
                .watermarks()
                .into_iter()
                .flatten()
                .all(|mark| mark == 0)
        );
        bench.not_after = not_after(Some(last.tick));
        bench.claim(1, tick);
        bench.answer_all(1);
        assert!(won(&bench.seen(1)), "{outcome:?}");
    }
}
