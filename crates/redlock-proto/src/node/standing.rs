use std::{sync::Arc, time::Duration};

use crate::{NodeTime, RunId};

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
    PolicyMismatch {
        /// Theirs, as [`Quarantine::to_wire`](crate::Quarantine::to_wire) writes it.
        theirs: Arc<str>,
    },
}
