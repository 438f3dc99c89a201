use std::time::Duration;

use crate::{NodeKey, Outcome, OwnerId};

/// One operation on one node.
///
/// All nodes of a lock are asked the same.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a node must handle every part of a request"
)]
pub struct Request {
    /// What to do.
    pub verb: Verb,
    /// The key on the node.
    pub key: NodeKey,
    /// On whose behalf.
    pub owner: OwnerId,
}

/// What a node is asked to do with a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a node must handle every verb")]
pub enum Verb {
    /// Take the key for `ttl` if nobody has it.
    Acquire {
        /// How long the node keeps the key.
        ttl: Duration,
    },
    /// Keep the key for `ttl` from now if the owner has it; never create it.
    Extend {
        /// How long the node keeps the key.
        ttl: Duration,
    },
    /// Let the key go if the owner has it.
    Release,
}

/// What a node answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a client must handle every answer")]
pub enum Reply {
    /// It did what it was asked to.
    Done,
    /// Another owner has the key, and nothing was changed.
    Held {
        /// How long that owner's key will stay at most; `None` if it never expires.
        remaining: Option<Duration>,
    },
    /// Nobody has the key, so there was nothing to extend or release.
    Missing,
}

impl Reply {
    /// How this answer counts.
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Done => Outcome::Granted,
            Self::Held { remaining } => Outcome::Refused { remaining },
            Self::Missing => Outcome::Refused { remaining: None },
        }
    }
}
