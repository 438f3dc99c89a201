//! Streaks, and the gaps that end them.

use std::time::Duration;

use redlock_proto::{Instant, Streak};

fn ms(ms: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(ms))
}

#[test]
fn a_streak_is_broken_once_it_is_too_long() {
    let mut streak = Streak::default();
    assert_eq!(streak.pause(ms(1_000)), None, "nothing was won yet");
    assert!(!streak.looks(ms(1_000)), "nothing was won yet");
    streak.on_won(ms(1_000));
    streak.on_won(ms(1_200));
    assert_eq!(streak.pause(ms(1_249)), None);
    assert_eq!(streak.pause(ms(1_250)), Some(Streak::PAUSE));
    assert_eq!(streak.pause(ms(1_251)), Some(Streak::PAUSE), "not left yet");
    streak.on_paused(Streak::PAUSE);
    assert_eq!(streak.pause(ms(9_000)), None, "the next win begins another");
}

#[test]
fn a_gap_that_is_left_in_parts_is_left_once_they_add_up_to_it() {
    let part = Duration::from_millis(10);
    let mut streak = Streak::default();
    streak.on_won(ms(0));
    for times in 0..3 {
        assert_eq!(streak.pause(ms(300)), Some(Streak::PAUSE - times * part));
        streak.on_paused(part);
    }
    assert_eq!(streak.pause(ms(300)), None);
    // No other client was there to use the part of the gap.
    streak.on_won(ms(300));
    streak.on_paused(part);
    streak.on_undisputed(ms(400));
    assert_eq!(streak.pause(ms(650)), Some(Streak::PAUSE));
}

#[test]
fn a_streak_goes_on_while_nobody_else_wants_the_key() {
    let mut streak = Streak::default();
    streak.on_won(ms(0));
    assert!(!streak.looks(ms(124)));
    assert!(streak.looks(ms(125)));
    assert!(!streak.looks(ms(126)), "one look is under way");
    streak.on_undisputed(ms(125));
    assert_eq!(streak.pause(ms(374)), None);
    assert_eq!(streak.pause(ms(375)), Some(Streak::PAUSE));
    assert!(!streak.looks(ms(249)));
    assert!(streak.looks(ms(250)));
    assert_eq!(streak.pause(ms(375)), Some(Streak::PAUSE), "no answer came");
    streak.look_again();
    assert!(streak.looks(ms(376)));
}

#[test]
fn nodes_that_know_of_nobody_else_are_believed_for_so_long_only() {
    let mut streak = Streak::default();
    streak.on_won(ms(0));
    for asked in (100..10_000).step_by(100).map(ms) {
        streak.on_undisputed(asked);
    }
    assert_eq!(streak.pause(ms(5_149)), None);
    assert_eq!(streak.pause(ms(5_150)), Some(Streak::PAUSE));
    streak.on_paused(Streak::PAUSE);
    streak.on_won(ms(6_000));
    assert_eq!(streak.pause(ms(6_249)), None);
}
