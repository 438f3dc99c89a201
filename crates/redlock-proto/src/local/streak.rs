use std::time::Duration;

use crate::Instant;

/// The time for which one process has had a key to itself, turn after turn.
///
/// A caller that takes its turn right after another of the same process is always ahead of other
/// processes, which come back after a random delay and find the key taken.
/// So after [`LONGEST`](Self::LONGEST) the next turn waits for [`PAUSE`](Self::PAUSE) before it contends,
/// and leaves a gap in which another process can be first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streak {
    began: Option<Instant>,
}

impl Streak {
    /// The longest time for which turns may follow each other without a gap.
    pub const LONGEST: Duration = Duration::from_millis(250);

    /// The gap: a tenth of the streak.
    pub const PAUSE: Duration = Duration::from_millis(25);

    /// Notes that a turn won the key.
    pub fn on_won(&mut self, now: Instant) {
        self.began.get_or_insert(now);
    }

    /// Returns how long the next turn must wait before it contends, if it must.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        let began = self.began?;
        (now.saturating_since(began) >= Self::LONGEST).then_some(Self::PAUSE)
    }

    /// Notes that the gap was left: the next win begins another streak.
    pub fn on_paused(&mut self) {
        self.began = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    #[test]
    fn a_streak_is_broken_once_it_is_too_long() {
        let mut streak = Streak::default();
        assert_eq!(streak.pause(ms(1_000)), None, "nothing was won yet");
        streak.on_won(ms(1_000));
        streak.on_won(ms(1_200));
        assert_eq!(streak.pause(ms(1_249)), None);
        assert_eq!(streak.pause(ms(1_250)), Some(Streak::PAUSE));
        assert_eq!(streak.pause(ms(1_251)), Some(Streak::PAUSE), "not left yet");
        streak.on_paused();
        assert_eq!(streak.pause(ms(9_000)), None, "the next win begins another");
    }
}
