use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

/// A tick of which this replica has not decided yet whether it starts it.
#[must_use = "it is decided when this is dropped"]
pub(crate) struct Undecided<'a> {
    all: &'a Ticks,
    pub(crate) tick: DateTime<Utc>,
}

/// The ticks of a job that are undecided.
#[derive(Debug, Default)]
pub(crate) struct Ticks(Mutex<Vec<DateTime<Utc>>>);

impl Ticks {
    /// Returns the newest instant before all of them that are as late as that, and not later than another.
    ///
    /// Who begins there deals with them.
    pub(crate) fn before(&self, oldest: DateTime<Utc>, latest: DateTime<Utc>) -> DateTime<Utc> {
        let ticks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ticks = ticks.iter().filter(|tick| **tick >= oldest);
        let before = ticks.map(|tick| *tick - TimeDelta::milliseconds(1));
        before.fold(latest, DateTime::min)
    }
}

impl<'a> Undecided<'a> {
    pub(crate) fn new(all: &'a Ticks, tick: DateTime<Utc>) -> Self {
        // Nothing panics while the lock is held.
        let mut ticks = all.0.lock().unwrap_or_else(PoisonError::into_inner);
        ticks.push(tick);
        Self { all, tick }
    }
}

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        let mut ticks = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = ticks.iter().position(|tick| *tick == self.tick) {
            ticks.swap_remove(place);
        }
    }
}
