use std::{fmt, sync::Arc, time::Duration};

use crate::RunId;

/// Where a node stands, read in the same atomic step as the requests of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a client must handle every part of it"
)]
pub struct Standing {
    /// Whether it votes.
    pub state: MarkState,
    /// Its wall clock.
    pub time: NodeTime,
    /// Which run of the server it is, so that one server with two addresses has one vote.
    pub run: RunId,
}

/// Whether a node votes in a namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a client must handle every state")]
pub enum MarkState {
    /// It votes.
    Voting,
    /// It may have forgotten leases, and may vote after this time.
    Quarantined {
        /// How much longer.
        ready_in: Duration,
        /// When the quarantine began, by the node's clock.
        since: NodeTime,
    },
    /// Its quarantine has ended; it votes once it was told the floor of its counters.
    Aged {
        /// When the quarantine began, by the node's clock.
        since: NodeTime,
    },
    /// Clients with another [`Quarantine`](crate::Quarantine) use it.
    Unlike {
        /// Theirs, as [`Quarantine::to_wire`](crate::Quarantine::to_wire) writes it.
        theirs: Arc<str>,
    },
}

/// A reading of a node's wall clock, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeTime(u64);

impl NodeTime {
    /// This many microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The whole milliseconds since the epoch, in which nodes expire keys.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }
}

impl fmt::Display for NodeTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} µs", self.0)
    }
}
