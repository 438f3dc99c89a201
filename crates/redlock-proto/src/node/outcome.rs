use std::{sync::Arc, time::Duration};

/// The outcome of a request that was meant for one node, as far as it is known.
///
/// A request acts at most once.
/// The difference between [`NotExecuted`](Self::NotExecuted) and [`Unknown`](Self::Unknown) decides about clean-up.
/// A node that may have acted, or may still act, must be asked to undo it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NodeOutcome {
    /// The node did what it was asked to, and that is a vote.
    Granted {
        /// The fencing counter, if it took the key.
        counter: u64,
    },
    /// The node did what it was asked to, and that is not a vote.
    NotAVote {
        /// The time until it may vote again, if it is quarantined.
        ready_in: Option<Duration>,
    },
    /// The node answered and refused: the key is another's.
    Refused {
        /// The longest time that the present holder's key will stay; `None` if it never expires.
        remaining: Option<Duration>,
    },
    /// The node answered and refused: the key is another's, and the caller waits in line for it.
    InLine {
        /// The longest time that the present holder's key will stay; `None` if it never expires.
        remaining: Option<Duration>,
    },
    /// The node answered that no owner has the key.
    Missing,
    /// The request failed before it was sent, or the node said that it did not run it.
    NotExecuted,
    /// The request was sent and no usable answer came in time: it may have run, and may still run.
    Unknown,
}

impl NodeOutcome {
    /// Returns whether the node may hold, now or later, what it was asked to take.
    pub(crate) const fn may_hold(self) -> bool {
        matches!(
            self,
            Self::Granted { .. } | Self::NotAVote { .. } | Self::InLine { .. } | Self::Unknown
        )
    }

    /// Returns whether the node holds what it was asked to take.
    pub const fn holds(self) -> bool {
        matches!(self, Self::Granted { .. } | Self::NotAVote { .. })
    }
}

/// A node that must be asked to release a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must handle every part of it"
)]
pub struct GiveBack {
    /// The node.
    pub node: usize,
    /// `true` if a request may still be on its way that must not take the key any more: the release must tombstone the
    /// owner.
    pub tombstone: bool,
}

/// The error of a request that has no reply.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must fill in every part of it"
)]
pub struct RequestError {
    /// `true` if the node may have run it, or may run it yet.
    pub may_have_run: bool,
    /// `true` if the node said that it refuses to write, instead of running it.
    ///
    /// Such a node says where it stands all the same, so only a write shows that it writes again.
    pub refuses_writes: bool,
    /// The reason, in words for an operator and without credentials.
    pub reason: Arc<str>,
}

impl RequestError {
    /// Makes the error of a request that was not and will not be run, for a reason that says nothing of what the node
    /// writes.
    pub const fn not_executed(reason: Arc<str>) -> Self {
        Self {
            may_have_run: false,
            refuses_writes: false,
            reason,
        }
    }

    /// Makes the error of a request that may have been run.
    pub const fn unknown(reason: Arc<str>) -> Self {
        Self {
            may_have_run: true,
            refuses_writes: false,
            reason,
        }
    }

    /// Returns whether the node could not read the value of a key, which says nothing of its other keys.
    pub fn is_of_a_key(&self) -> bool {
        ["what is remembered of ", "the key is shared and "]
            .iter()
            .any(|words| self.reason.starts_with(words))
    }
}
