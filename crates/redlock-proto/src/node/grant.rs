//! The replies that leases and claims rest on.

use crate::{JobVerb, Reply, Request, Verb};

impl Reply {
    /// Returns whether a lease or a claim may rest on this reply to `request`.
    ///
    /// A release can be answered by a grant, too: [`Passed`](Self::Passed) grants the key to a caller in line.
    pub const fn grants(&self, request: &Request) -> bool {
        match self {
            Self::Taken { .. } | Self::Claimed { .. } | Self::Passed { .. } => true,
            Self::Done => request.keeps(),
            // A link asks again for what is unclear, and its lease rests on the second reply.
            Self::Unclear
            | Self::Held { .. }
            | Self::InLine { .. }
            | Self::OtherSlots { .. }
            | Self::Missing
            | Self::Tombstoned
            | Self::PolicyMismatch
            | Self::ServerInfo(_)
            | Self::Greatest(_)
            | Self::NoClaim(_)
            | Self::Runs { .. } => false,
        }
    }
}

impl Request {
    /// Returns whether a node that has done this has taken or kept a key for a lease or a claim.
    const fn keeps(&self) -> bool {
        match self {
            Self::Lock { verb, .. } => match verb {
                Verb::Acquire { .. } | Verb::Extend { .. } | Verb::Heal { .. } => true,
                Verb::Release { .. } | Verb::Tombstone { .. } => false,
            },
            Self::Job { verb, .. } => match verb {
                JobVerb::Claim { .. } | JobVerb::Commit { .. } => true,
                JobVerb::Record { .. } | JobVerb::Withdraw { .. } | JobVerb::Read { .. } => false,
            },
            Self::Node(_) => false,
        }
    }
}
