use std::time::Duration;

use crate::Instant;

/// The time for which one process has had a key to itself, turn after turn.
///
/// A caller that takes its turn right after another of the same process is always ahead of other processes.
/// These come back after a random delay and find the key taken.
/// So after [`LONGEST`](Self::LONGEST) the next turn waits for [`PAUSE`](Self::PAUSE) before it contends,
/// and leaves a gap in which another process can be first.
/// A turn that may not wait for all of it leaves a part of the gap, and the turns after it the rest.
///
/// Nodes can remember that they refused the key to no other client.
/// A holder asks them ahead of the gap; if they refused none, the gap would serve no process, and the time begins
/// again.
/// This goes on for [`LONGEST_UNSEEN`](Self::LONGEST_UNSEEN) at most, because nodes may not have seen all clients that
/// want the key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streak {
    /// When the key was won first after the last gap.
    won: Option<Instant>,
    /// Up to when it is known that no other client has asked for it.
    undisputed: Option<Instant>,
    /// Whether a holder has asked since then.
    has_looked: bool,
    /// The part of the gap that was left.
    paused: Duration,
}

impl Streak {
    /// The longest time for which turns may follow each other without a gap, while another client may want the key.
    pub const LONGEST: Duration = Duration::from_millis(250);

    /// The longest time after which an answer still counts that no other client wants the key.
    ///
    /// Nodes know nothing of clients that ask by the script, or by the functions of another release.
    pub const LONGEST_UNSEEN: Duration = Duration::from_secs(5);

    /// The time after which a holder asks nodes whether another client wants the key: early enough for their answer.
    pub const LOOK_AFTER: Duration = Duration::from_millis(125);

    /// The gap: a tenth of the streak.
    pub const PAUSE: Duration = Duration::from_millis(25);

    /// Notes that a turn won the key.
    pub fn on_won(&mut self, now: Instant) {
        self.won.get_or_insert(now);
    }

    /// Returns whether the present holder is to ask nodes now whether another client wants the key; once for each
    /// answer.
    pub fn looks(&mut self, now: Instant) -> bool {
        let looks = !self.has_looked && self.lasts(now) >= Some(Self::LOOK_AFTER);
        self.has_looked |= looks;
        looks
    }

    /// Lets the next holder ask again, because the question of the one before has come to nothing.
    pub const fn look_again(&mut self) {
        self.has_looked = false;
    }

    /// Notes that nodes had refused the key to no client lately when they were asked at `asked`.
    pub fn on_undisputed(&mut self, asked: Instant) {
        let unseen = self.won.map(|won| asked.saturating_since(won));
        if unseen < Some(Self::LONGEST_UNSEEN) {
            self.undisputed = self.undisputed.max(Some(asked));
            self.has_looked = false;
            self.paused = Duration::ZERO;
        }
    }

    /// Returns how long the next turn must wait before it contends, if it must.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        (self.lasts(now) >= Some(Self::LONGEST)).then_some(Self::PAUSE - self.paused)
    }

    /// Notes that a turn has waited: once all of the gap was left, the next win begins another streak.
    pub fn on_paused(&mut self, waited: Duration) {
        // invariant: less than `PAUSE`
        self.paused = self.paused.saturating_add(waited);
        if self.paused >= Self::PAUSE {
            *self = Self::default();
        }
    }

    /// Returns for how long another client may have wanted the key; `None` if it was not won yet.
    fn lasts(&self, now: Instant) -> Option<Duration> {
        let since = self.undisputed.max(self.won)?;
        Some(now.saturating_since(since))
    }
}
