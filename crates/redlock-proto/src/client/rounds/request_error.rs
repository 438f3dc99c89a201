use std::sync::Arc;

use crate::NodeAnswer;

/// Why a request has no reply.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must fill in every part of it"
)]
pub struct RequestError {
    /// Whether the node may have run it, or may run it yet.
    pub may_have_run: bool,
    /// Why, in words for an operator and without credentials.
    pub reason: Arc<str>,
}

impl RequestError {
    pub(in super::super) fn to_answer(&self) -> NodeAnswer {
        let reason = Arc::clone(&self.reason);
        if self.may_have_run {
            NodeAnswer::Unknown { reason }
        } else {
            NodeAnswer::NotExecuted { reason }
        }
    }
}
