use std::{fmt, ops::Add, time::Duration};

/// A moment in true time: the microseconds since a history began.
///
/// No client and no node can read it; only the checker of a history can.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Moment(u64);

impl Moment {
    /// The beginning of the history.
    pub const START: Self = Self(0);

    /// Later than everything.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the moment `micros` microseconds after the history began.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since the history began.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is not earlier.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NEVER => f.write_str("never"),
            Self(micros) => write!(f, "{}.{:06} s", micros / 1_000_000, micros % 1_000_000),
        }
    }
}
