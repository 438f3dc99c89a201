//! The one place where the wall clock is read, and how its instants are written on the nodes.

#[cfg(feature = "test-util")]
mod job_clock;

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use redlock_core::Tick;

#[cfg(feature = "test-util")]
pub(crate) use self::job_clock::Driven;
#[cfg(feature = "test-util")]
pub use self::job_clock::JobClock;

/// The source of a replica's time of day.
///
/// Ticks are instants of the calendar, so the replica's wall clock says when to ask for one.
/// The nodes' clocks decide whether it is time; see [`replica::claims`](crate::replica).
pub(crate) trait WallClock: Send + Sync {
    fn now(&self) -> DateTime<Utc>;

    /// Returns the clock if a test has set it.
    #[cfg(feature = "test-util")]
    fn of_test(&self) -> Option<&JobClock> {
        None
    }
}

/// The machine's clock.
pub(crate) struct SystemClock;

impl WallClock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// Returns how long `now` is after `tick`; zero before it.
pub(crate) fn lag(tick: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    (now - tick).to_std().unwrap_or_default()
}

/// Returns the tick as the nodes count; `None` before 1970 and after the year 9999.
pub(crate) fn to_tick(instant: DateTime<Utc>) -> Option<Tick> {
    Tick::from_millis(u64::try_from(instant.timestamp_millis()).ok()?)
}

/// Returns the instant of a tick as the nodes count it.
pub(crate) fn to_instant(tick: Tick) -> DateTime<Utc> {
    let millis = i64::try_from(tick.as_millis()).unwrap_or(i64::MAX);
    DateTime::from_timestamp_millis(millis).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Writes an instant in whole seconds, such as `2026-12-24T18:00:00Z`.
pub(crate) fn written(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A replica whose clock is ahead by at most this time waits for the nodes' clocks.
pub(crate) const LONGEST_AHEAD: Duration = Duration::from_secs(60);
