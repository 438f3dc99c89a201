//! The inputs of a client: its configuration, readings of its clocks, and randomness.

use std::time::Duration;

use crate::{Instant, Keyspace, OwnerId, Quorum, RetryPolicy};

/// The settings of a client.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must settle every part of it"
)]
pub struct ClientConfig {
    /// The number of nodes, and the majority of them.
    pub quorum: Quorum,
    /// The namespace, and its quarantine.
    pub keyspace: Keyspace,
    /// The policy for trying again.
    pub retry: RetryPolicy,
    /// The longest time for which a node may say nothing though it owes an answer, counted from when a request was written.
    pub node_timeout: Duration,
    /// The time after which a node that votes is asked again what it is.
    pub inspect_every: Duration,
    /// The number of nodes that an acquire asks at once.
    pub fan_out: FanOut,
    /// The number of requests that may wait to be sent to a node; while more do so, new attempts wait, and renewals and
    /// releases do not.
    pub most_unsent: usize,
}

impl ClientConfig {
    /// The default of [`inspect_every`](Self::inspect_every).
    pub const INSPECT_EVERY: Duration = Duration::from_secs(5);
}

/// A reading of the client's clocks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must fill in every part of it"
)]
pub struct Now {
    /// The monotonic clock, on which everything is timed.
    pub clock: Instant,
    /// The wall clock, in microseconds since the Unix epoch.
    ///
    /// Fencing tokens are close to it, and nothing but their distance rests on it, unless a majority of the
    /// nodes loses its counters at once.
    pub wall: u64,
}

/// The source of the randomness of a client, or of a link.
///
/// With a seeded source, the same inputs give the same effects.
pub trait Entropy: Send + Sync {
    /// Returns an owner that was never used before, from the operating system's generator.
    fn owner(&mut self) -> OwnerId;

    /// Returns 64 random bits, for a delay.
    fn bits(&mut self) -> u64;
}

/// A number by which a driver recognises the answer to something it asked for.
pub type Ask = u64;

/// The work that a [`Link`](crate::Link) has before it, as the client must know it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must pass on every part of it"
)]
pub struct Backlog {
    /// The number of requests that wait in this client to be sent.
    pub unsent: usize,
    /// Since when the node has said nothing although a call was written to it; `None` if it owes no answer.
    pub awaited: Option<Instant>,
}

/// The number of nodes that an acquire or a renewal asks at once.
///
/// Any strict majority of the nodes decides.
/// An acquire that asks only a majority saves work on the other nodes and in the client: two fifths of it if there are
/// five nodes.
/// It asks the others if one of the majority fails, refuses, or is late.
/// Renewals that ask a majority let the nodes take turns, so that all keep the key.
/// Claims of ticks, releases and extensions that a holder asks for go to all nodes that they concern.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FanOut {
    /// A majority first for an acquire; for renewals a majority from 64 leases on, and all before.
    #[default]
    Adaptive,
    /// All, always.
    All,
    /// A majority for renewals too, always: the fewest commands on the nodes.
    Majority,
}
