use std::sync::Arc;

use crate::NodeAnswer;

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

    pub(in super::super) fn to_answer(&self) -> NodeAnswer {
        let reason = Arc::clone(&self.reason);
        if self.may_have_run {
            NodeAnswer::Unknown { reason }
        } else {
            NodeAnswer::NotExecuted { reason }
        }
    }
}
