use std::{
    fmt,
    ops::{Add, Sub},
    time::Duration,
};

/// A point on the client's clock, as the time since an origin that the client chose.
///
/// The protocol never reads a clock; its driver does, and passes the reading.
/// That clock must be monotonic and should count the time in which the machine is suspended.
///
/// Arithmetic saturates, so that no combination of settings can wrap around.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(Duration);

impl Instant {
    /// The origin of the clock.
    pub const ORIGIN: Self = Self(Duration::ZERO);

    /// Returns the point that lies `since_origin` after the clock's origin.
    pub const fn from_origin(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// Returns the time since the clock's origin.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is not earlier.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
