use std::time::Duration;

use crate::Instant;

/// The order in which callers of several processes have a key that they wait for.
///
/// All callers of a key should use the same.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Fairness {
    /// A process hands its lease from caller to caller for up to a quarter of a second, and then lets others have it that
    /// came before its next caller.
    ///
    /// A hand-over inside a process costs no round trip, so this is for throughput.
    #[default]
    Cohort,
    /// First come, first served, over all processes: a process hands no lease on, and its next caller enters the line before
    /// the process lets the key go.
    ///
    /// Callers that came at about the same time, up to a round trip apart, may be served in any order.
    /// A hand-over costs about one round trip, and an acquire of a free key half as much again on each node.
    Strict,
}

/// The time for which one process has had a key to itself, turn after turn.
///
/// After [`LONGEST`](Self::LONGEST) the next turn contends again.
/// A caller that takes its turn right after another of the same process is ahead of processes that try again at random:
/// these find the key taken.
/// So that turn first waits for [`PAUSE`](Self::PAUSE), and leaves a gap in which another process can be first.
/// A turn that may not wait for all of it leaves a part of the gap, and the turns after it the rest.
/// There is no gap where callers of other processes wait in line, because nodes give the key to these.
/// Else a process leaves the gap whether or not another process wants the key: it cannot know of others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streak {
    /// When the key was won first after the last gap.
    won: Option<Instant>,
    /// The part of the gap that was left.
    paused: Duration,
    /// Set if callers waited in line when the key was won last: this process's was one of them.
    in_line: bool,
}

impl Streak {
    /// The longest time for which turns may follow each other without a gap.
    pub const LONGEST: Duration = Duration::from_millis(250);

    /// The gap: a tenth of the streak.
    pub const PAUSE: Duration = Duration::from_millis(25);

    /// Notes that a turn won the key, perhaps because nodes gave it to a caller that waited in line.
    pub fn on_won(&mut self, in_line: bool, now: Instant) {
        if in_line {
            *self = Self::default();
        }
        self.won.get_or_insert(now);
        self.in_line = in_line;
    }

    /// Returns whether the next turn must contend.
    pub fn is_over(&self, now: Instant) -> bool {
        let lasts = self.won.map(|won| now.saturating_since(won));
        lasts.is_some_and(|lasts| lasts >= Self::LONGEST)
    }

    /// Returns how long the next turn must wait before it contends, if it must.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        (self.is_over(now) && !self.in_line).then_some(Self::PAUSE - self.paused)
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
