use std::collections::BTreeMap;

use crate::Instant;

/// What is due when, on the client's own clock.
///
/// One ordered map serves every round, retry and lease, so that a hundred thousand leases are one
/// sleeping task.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    due: BTreeMap<TimerKey, Timer>,
    next: u64,
}

/// What can be due.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    RoundLimit(u64),
    Retry(u64),
    Lease(u64),
    Watch(usize),
    Listening,
    Sign,
}

/// A timer that was set; the number tells those of one moment apart.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct TimerKey(Instant, u64);

impl TimerKey {
    /// Returns when it is due.
    pub(super) fn at(self) -> Instant {
        self.0
    }
}

impl Timers {
    pub(super) fn set(&mut self, at: Instant, timer: Timer) -> TimerKey {
        let key = TimerKey(at, self.next);
        self.next += 1;
        self.due.insert(key, timer);
        key
    }

    pub(super) fn cancel(&mut self, key: TimerKey) {
        self.due.remove(&key);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first_key_value().map(|(key, _)| key.0)
    }

    /// Takes the first timer that is due at `now`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        let first = self.due.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}
