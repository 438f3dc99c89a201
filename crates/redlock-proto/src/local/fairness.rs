use std::time::Duration;

use crate::Instant;

/// The time for which one process has had a key to itself, turn after turn.
///
/// A caller that takes its turn right after another of the same process is always ahead of other processes.
/// These come back after a random delay and find the key taken.
/// So after [`LONGEST`](Self::LONGEST) the next turn waits for [`PAUSE`](Self::PAUSE) before it contends,
/// and leaves a gap in which another process can be first.
/// A turn that may not wait for all of it leaves a part of the gap, and the turns after it the rest.
/// A process leaves the gap whether or not another process wants the key: it cannot know of others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streak {
    /// When the key was won first after the last gap.
    won: Option<Instant>,
    /// The part of the gap that was left.
    paused: Duration,
}

impl Streak {
    /// The longest time for which turns may follow each other without a gap.
    pub const LONGEST: Duration = Duration::from_millis(250);

    /// The gap: a tenth of the streak.
    pub const PAUSE: Duration = Duration::from_millis(25);

    /// Notes that a turn won the key.
    pub fn on_won(&mut self, now: Instant) {
        self.won.get_or_insert(now);
    }

    /// Returns how long the next turn must wait before it contends, if it must.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        let lasts = now.saturating_since(self.won?);
        (lasts >= Self::LONGEST).then_some(Self::PAUSE - self.paused)
    }

    /// Notes that a turn has waited: once all of the gap was left, the next win begins another streak.
    pub fn on_paused(&mut self, waited: Duration) {
        // invariant: less than `PAUSE`
        self.paused = self.paused.saturating_add(waited);
        if self.paused >= Self::PAUSE {
            *self = Self::default();
        }
    }
}
