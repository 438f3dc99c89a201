use std::time::Duration;

use crate::Instant;

/// The time for which one process has had a key to itself, turn after turn.
///
/// A caller that takes its turn right after another of the same process is always ahead of other
/// processes, which come back after a random delay and find the key taken.
/// So after [`LONGEST`](Self::LONGEST) the next turn waits for [`PAUSE`](Self::PAUSE) before it contends,
/// and leaves a gap in which another process can be first.
///
/// A gap in which no other process was seen says that probably none waits.
/// One that had the key for a moment within the gap is not seen.
/// So the next streak is longer, up to two seconds, until another process is seen.
/// A process that waits may well miss a short gap, because its attempts are further apart.
/// It cannot miss a [`SURE_PAUSE`](Self::SURE_PAUSE), and each streak of a second or more ends with such a gap.
///
/// Another process is seen as a win that took longer than [`QUICK`](Self::QUICK): an attempt was refused.
/// From then on streaks are short, and the fourth gap in a row that nobody uses is a sure one.
/// Only if nobody uses that one either do streaks grow again.
/// Where a round trip takes longer than `QUICK`, nothing is known of other processes, and no streak grows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streak {
    began: Option<Instant>,
    /// When the key was won from the nodes last.
    won: Option<Instant>,
    /// Whether the gap that was due was left since then.
    has_paused: bool,
    /// The place of the present length in [`LENGTHS`].
    length: usize,
    /// How many more gaps must be of no use to others before streaks grow, because another process was seen.
    doubts: u32,
}

impl Streak {
    /// The longest time for which turns may follow each other without a gap while other processes are there.
    ///
    /// No lease passes from caller to caller for longer.
    pub const LONGEST: Duration = Duration::from_millis(250);

    /// The gap: a tenth of the streak.
    pub const PAUSE: Duration = Duration::from_millis(25);

    /// A gap that no process misses that waits for the key.
    ///
    /// It is as long as the longest delay between two attempts, which is 100 ms, and one of its attempts, which may take
    /// twice as long as an attempt of this process.
    pub const SURE_PAUSE: Duration = Duration::from_millis(120);

    /// The longest time that an attempt takes if the key is free and the nodes are near.
    ///
    /// After an attempt that was refused, the next mostly begins later than that.
    pub const QUICK: Duration = Duration::from_millis(10);

    /// Notes that a turn won the key, and how long that took from its first attempt on.
    pub fn on_won(&mut self, now: Instant, took: Duration) {
        if took > Self::QUICK {
            self.length = 0;
            self.doubts = DOUBTS;
        } else if self.has_paused {
            self.on_unused();
        }
        self.has_paused = false;
        self.won = Some(now);
        self.began.get_or_insert(now);
    }

    /// Returns how long the next turn must wait before it contends, if it must and its caller waits as long.
    ///
    /// A caller that does not wait long enough for a gap that nobody misses leaves a short one.
    pub fn pause(&self, longest_wait: Duration, now: Instant) -> Option<Duration> {
        let pauses = [self.gap(), Self::PAUSE];
        let pause = pauses.into_iter().find(|pause| *pause <= longest_wait);
        pause.filter(|_| self.is_over(now))
    }

    /// Returns whether the lease may pass to the next turn.
    pub fn may_pass_on(&self, now: Instant) -> bool {
        let is_old = |won| now.saturating_since(won) >= Self::LONGEST;
        !self.won.is_some_and(is_old) && !self.is_over(now)
    }

    /// Notes that a gap of this length was left: the next win begins another streak.
    pub fn on_paused(&mut self, pause: Duration) {
        self.has_paused = pause >= self.gap();
        if !self.has_paused {
            // Somebody may have missed it.
            self.length = 0;
        }
        self.began = None;
    }

    /// Takes note of a gap of which no other process has made use.
    fn on_unused(&mut self) {
        self.length = match self.doubts {
            0 => (self.length + 1).min(LENGTHS.len() - 1),
            1 => FIRST_SURE,
            _ => 0,
        };
        self.doubts = self.doubts.saturating_sub(1);
    }

    /// Returns whether it is time to let other processes have their turn.
    fn is_over(&self, now: Instant) -> bool {
        let is_long = |began| now.saturating_since(began) >= LENGTHS[self.length];
        self.began.is_some_and(is_long)
    }

    fn gap(&self) -> Duration {
        if self.doubts == 1 || self.length >= FIRST_SURE {
            Self::SURE_PAUSE
        } else {
            Self::PAUSE
        }
    }
}

/// The lengths of streaks, each after the one before and an unused gap.
const LENGTHS: [Duration; 5] = [
    Streak::LONGEST,
    Duration::from_millis(375),
    Duration::from_millis(560),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// The place of the first length after which nobody may miss the gap.
const FIRST_SURE: usize = 3;

/// A single process that waits misses three short gaps in a row once in five times, and no sure one.
const DOUBTS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);
    const AT_ONCE: Duration = Duration::from_millis(1);

    fn ms(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    /// Has the key from `from` on until a gap is due; returns when that is, and how long the gap is.
    fn next_gap(streak: &mut Streak, from: u64, took: Duration) -> (u64, Duration) {
        streak.on_won(ms(from), took);
        let due = (from..).find_map(|at| Some((at - from, streak.pause(LONG, ms(at))?)));
        let due = due.unwrap();
        streak.on_paused(due.1);
        due
    }

    #[test]
    fn a_streak_is_broken_once_it_is_too_long() {
        let mut streak = Streak::default();
        assert_eq!(streak.pause(LONG, ms(1_000)), None, "nothing was won yet");
        streak.on_won(ms(1_000), AT_ONCE);
        streak.on_won(ms(1_200), AT_ONCE);
        assert_eq!(streak.pause(LONG, ms(1_249)), None);
        assert_eq!(streak.pause(LONG, ms(1_250)), Some(Streak::PAUSE));
        let left = Some(Streak::PAUSE);
        assert_eq!(streak.pause(LONG, ms(1_251)), left, "not left yet");
        streak.on_paused(Streak::PAUSE);
        assert_eq!(
            streak.pause(LONG, ms(9_000)),
            None,
            "the next win begins another"
        );
    }

    #[test]
    fn streaks_grow_while_no_other_process_makes_use_of_the_gaps() {
        let mut streak = Streak::default();
        let mut gaps = (0..7).map(|turn| next_gap(&mut streak, turn * 10_000, AT_ONCE));
        for expected in [250, 375, 560] {
            assert_eq!(gaps.next(), Some((expected, Streak::PAUSE)));
        }
        for expected in [1_000, 2_000, 2_000, 2_000] {
            assert_eq!(gaps.next(), Some((expected, Streak::SURE_PAUSE)));
        }
    }

    #[test]
    fn streaks_are_short_once_another_process_was_seen_until_nobody_uses_a_sure_gap() {
        let mut streak = Streak::default();
        for turn in 0..5 {
            next_gap(&mut streak, turn * 10_000, AT_ONCE);
        }
        let refused = Streak::QUICK + AT_ONCE;
        let first = next_gap(&mut streak, 50_000, refused);
        assert_eq!(first, (250, Streak::PAUSE));
        let mut gaps = (6..11).map(|turn| next_gap(&mut streak, turn * 10_000, AT_ONCE));
        for expected in [Streak::PAUSE, Streak::PAUSE, Streak::SURE_PAUSE] {
            assert_eq!(gaps.next(), Some((250, expected)));
        }
        assert_eq!(gaps.next(), Some((1_000, Streak::SURE_PAUSE)));
        assert_eq!(gaps.next(), Some((2_000, Streak::SURE_PAUSE)));
    }

    #[test]
    fn a_long_round_trip_leaves_streaks_as_they_are() {
        let mut streak = Streak::default();
        for turn in 0..9 {
            let due = next_gap(&mut streak, turn * 10_000, 2 * Streak::QUICK);
            assert_eq!(due, (250, Streak::PAUSE));
        }
    }

    #[test]
    fn a_caller_that_cannot_wait_for_long_leaves_a_short_gap_and_the_next_streak_is_no_longer() {
        let mut streak = Streak::default();
        for turn in 0..5 {
            next_gap(&mut streak, turn * 10_000, AT_ONCE);
        }
        streak.on_won(ms(50_000), AT_ONCE);
        let short = Streak::SURE_PAUSE - AT_ONCE;
        assert_eq!(streak.pause(short, ms(52_000)), Some(Streak::PAUSE));
        assert_eq!(streak.pause(Streak::PAUSE - AT_ONCE, ms(52_000)), None);
        streak.on_paused(Streak::PAUSE);
        assert_eq!(next_gap(&mut streak, 60_000, AT_ONCE), (250, Streak::PAUSE));
    }

    #[test]
    fn no_lease_passes_on_for_longer_though_the_streak_is() {
        let mut streak = Streak::default();
        for turn in 0..5 {
            next_gap(&mut streak, turn * 10_000, AT_ONCE);
        }
        streak.on_won(ms(50_000), AT_ONCE);
        assert!(streak.may_pass_on(ms(50_249)));
        assert!(!streak.may_pass_on(ms(50_250)));
        streak.on_won(ms(50_250), AT_ONCE);
        assert!(streak.may_pass_on(ms(50_499)));
        streak.on_won(ms(51_900), AT_ONCE);
        assert!(!streak.may_pass_on(ms(52_000)), "the streak is over");
    }
}
