//! Moments and lengths of time: the client's own clock, the nodes' clocks, and the lengths of a lease.

mod rounded;
mod timing;

use std::{
    fmt,
    num::NonZero,
    ops::{Add, Sub},
    time::Duration,
};

pub use self::{rounded::Rounded, timing::Timing};

/// A point on the client's clock, as the time since an origin that the client chose.
///
/// The protocol never reads a clock; its driver does, and passes the reading.
/// That clock must be monotonic and should count the time in which the machine is suspended.
///
/// Arithmetic saturates, after five centuries, so that no combination of settings can wrap around.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(
    // The nanoseconds since the origin, and one: a client keeps several moments of each lease, perhaps, and so they take
    // half of the memory of a `Duration`, also in an `Option`.
    NonZero<u64>,
);

impl Instant {
    /// The origin of the clock.
    pub const ORIGIN: Self = Self(NonZero::<u64>::MIN);

    /// Returns the point that lies `since_origin` after the clock's origin.
    pub const fn from_origin(since_origin: Duration) -> Self {
        Self(Self::ORIGIN.0.saturating_add(nanos(since_origin)))
    }

    /// Returns the time since the clock's origin.
    pub const fn since_origin(self) -> Duration {
        self.saturating_since(Self::ORIGIN)
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is not earlier.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }
}

/// Returns a length of time in nanoseconds, or the most that there can be.
const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 {
        u64::MAX
    } else {
        nanos as u64
    }
}

impl Default for Instant {
    fn default() -> Self {
        Self::ORIGIN
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        let since_origin = self.since_origin().saturating_sub(duration);
        Self::from_origin(since_origin)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.since_origin())
    }
}

/// A reading of a node's wall clock, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeTime(u64);

impl NodeTime {
    /// Returns the time that is this number of microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time that was so long before.
    pub fn before(self, ago: Duration) -> Self {
        let ago = u64::try_from(ago.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(ago))
    }

    /// Returns the whole milliseconds since the epoch, in which nodes expire keys.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }
}

impl fmt::Display for NodeTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} µs", self.0)
    }
}
