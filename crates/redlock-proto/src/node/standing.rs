use std::{sync::Arc, time::Duration};

use crate::{NodeTime, RunId};

/// The standing of a node, read in the same atomic step as the requests of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a client must handle every part of it"
)]
pub struct Standing {
    /// The state of its mark: it votes, or it does not.
    pub state: MarkState,
    /// Its wall clock.
    pub time: NodeTime,
    /// The run of the server, so that one server with two addresses has one vote.
    pub run: RunId,
}

/// The state of a node's mark in a namespace, by which it votes or does not.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a client must handle every state")]
pub enum MarkState {
    /// It votes.
    Voting,
    /// It may have forgotten leases, and may vote after this time.
    Quarantined {
        /// The time that is left.
        ready_in: Duration,
        /// The beginning of the quarantine, by the node's clock.
        since: NodeTime,
    },
    /// Its quarantine has ended; it votes once it is given the floor of its counters.
    Aged {
        /// The beginning of the quarantine, by the node's clock.
        since: NodeTime,
    },
    /// Clients with another [`Quarantine`](crate::Quarantine) use it.
    PolicyMismatch {
        /// Theirs, as [`Quarantine::to_wire`](crate::Quarantine::to_wire) writes it.
        theirs: Arc<str>,
    },
}
