//! The line of callers that wait for a key on a node.

use std::time::Duration;

use crate::{NodeTime, RunId};

/// The entry of a caller in the line for a key.
///
/// The nodes keep a line in the order in which its callers came.
/// When a node lets the key go, it gives the key to the first caller in the same step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a node must handle every part of it"
)]
pub struct InLine {
    /// Its place.
    pub place: LinePlace,
    /// The round in which it asks, which the message to its client names.
    pub round: u64,
    /// The time for which it gets the key.
    ///
    /// A caller that died in the meantime keeps others waiting for that long.
    pub grant: Duration,
    /// The time for which it waits, unless it asks again.
    pub stay: Duration,
}

/// A place in the line for a key: callers that came earlier are before those that came later.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a node must handle every part of it"
)]
pub struct LinePlace {
    /// The time at which the caller came, by the clocks that the nodes have in common.
    pub came: NodeTime,
    /// The number of its client, under which it hears of keys that it is given.
    pub client: u64,
}

impl LinePlace {
    /// Returns the place of a holder that lacks the key of a node: before all that wait for it.
    pub const fn of_holder(client: u64) -> Self {
        Self {
            came: NodeTime::from_micros(0),
            client,
        }
    }

    /// Returns whether it is such a place.
    pub const fn is_holders(&self) -> bool {
        self.came.as_micros() == 0
    }
}

/// A node's message to a client: it has given a key to a caller that waited in line.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a client must handle every part of it"
)]
pub struct Gift {
    /// The round in which the caller asked last, as the node heard it.
    pub round: u64,
    /// The counter, less the tokens reserved after the first.
    pub counter: u64,
    /// The node's clock.
    pub time: NodeTime,
    /// The run of the node's server.
    pub run: RunId,
}
