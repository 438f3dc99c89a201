use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

/// A tick of which this replica has not decided yet whether it starts it.
#[must_use = "it is decided when this is dropped"]
pub(crate) struct Undecided {
    all: Arc<Ticks>,
    pub(crate) tick: DateTime<Utc>,
}

/// The ticks of a job that are undecided.
#[derive(Debug, Default)]
pub(crate) struct Ticks(Mutex<Vec<DateTime<Utc>>>);

impl Ticks {
    /// Returns the newest instant before all undecided ticks and `next`, but `latest` at most.
    ///
    /// `next` is not among the undecided ticks yet; ticks before `oldest` do not count.
    /// A job that begins at this instant deals with all these ticks.
    pub(crate) fn before(
        &self,
        next: Option<DateTime<Utc>>,
        oldest: DateTime<Utc>,
        latest: DateTime<Utc>,
    ) -> DateTime<Utc> {
        let ticks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ticks = ticks.iter().copied().chain(next);
        let ticks = ticks.filter(|tick| *tick >= oldest);
        let before = ticks.map(|tick| tick - TimeDelta::milliseconds(1));
        before.fold(latest, DateTime::min)
    }
}

#[cfg(feature = "test-util")]
impl Ticks {
    /// Returns whether one of them is in this range.
    pub(crate) fn has_any(&self, within: std::ops::RangeInclusive<DateTime<Utc>>) -> bool {
        let ticks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ticks.iter().any(|tick| within.contains(tick))
    }
}

impl Undecided {
    pub(crate) fn new(all: &Arc<Ticks>, tick: DateTime<Utc>) -> Self {
        // Nothing panics while the lock is held.
        let mut ticks = all.0.lock().unwrap_or_else(PoisonError::into_inner);
        ticks.push(tick);
        Self {
            all: Arc::clone(all),
            tick,
        }
    }
}

impl Drop for Undecided {
    fn drop(&mut self) {
        let mut ticks = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = ticks.iter().position(|tick| *tick == self.tick) {
            ticks.swap_remove(place);
        }
    }
}
