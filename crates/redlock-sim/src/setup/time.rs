//! The time of a world.

use std::time::Duration;

/// Microseconds: the world counts in them, and does so too often for anything heavier.
pub(crate) type Micros = u64;

pub(crate) const MS: Micros = 1_000;
pub(crate) const SECOND: Micros = 1_000_000;

/// Returns the whole microseconds of a duration.
pub(crate) fn micros(duration: Duration) -> Micros {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
