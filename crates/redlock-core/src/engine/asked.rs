//! The callers that wait for an answer from the driver.

use redlock_proto::{LeaseTerms, NodeAnswer};
use tokio::sync::oneshot;

use super::{
    command::{AcquireAnswer, JobAnswer},
    holding::Won,
    look::IsUndisputed,
};
use crate::{ExtendError, ReleaseError, lease::Subject};

/// A caller that waits for an acquisition; an answer that it does not take drops the lease in it.
pub(super) struct Waiting {
    pub(super) subject: Subject,
    pub(super) terms: LeaseTerms,
    /// How many attempts were begun.
    pub(super) attempts: u32,
    /// Whether it is a part of a search for a slot.
    pub(super) is_part: bool,
    pub(super) answer: oneshot::Sender<AcquireAnswer<Won>>,
}

/// A request of a caller that the driver has not answered yet.
#[derive(Debug)]
pub(super) enum Asked {
    Extend {
        lease: u64,
        answer: oneshot::Sender<Result<(), ExtendError>>,
    },
    Look {
        answer: oneshot::Sender<IsUndisputed>,
    },
    Release {
        answer: oneshot::Sender<Result<(), ReleaseError>>,
    },
    Bless {
        answer: oneshot::Sender<Vec<NodeAnswer>>,
    },
    ReadJob {
        answer: oneshot::Sender<JobAnswer>,
    },
}
