//! The inputs of a client: its configuration, readings of its clocks, and randomness.

use std::time::Duration;

use super::FanOut;
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
    /// The number of nodes that an acquire asks at once.
    pub fan_out: FanOut,
    /// The number of requests that may wait to be sent to a node; while more do so, new attempts wait, and renewals and
    /// releases do not.
    pub most_unsent: usize,
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
