use std::fmt;

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
