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
    streak.on_won(false, ms(1_000));
    streak.on_won(false, ms(1_200));
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
    streak.on_won(false, ms(0));
    for times in 0..3 {
        assert_eq!(streak.pause(ms(300)), Some(Streak::PAUSE - times * part));
        streak.on_paused(part);
    }
    assert_eq!(streak.pause(ms(300)), None);
}
