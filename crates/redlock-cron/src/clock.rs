//! The one place where the wall clock is read.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// What a replica takes for the time of day.
///
/// Ticks are instants of the calendar, so that a wall clock says when to ask for one.
/// Whether it is time is for the nodes' clocks to say; see [`claim`](crate::claim).
pub(crate) trait Clock: Send + Sync {
    fn now(&self) -> DateTime<Utc>;
}

/// The machine's clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// How long `now` is after `tick`; zero before it.
pub(crate) fn lag(tick: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    (now - tick).to_std().unwrap_or_default()
}
