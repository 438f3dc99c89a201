use crate::{JobEntry, NodeKey, RunRecord};

/// The run that goes on under a lease.
#[derive(Clone, Debug)]
pub(super) struct ClaimedRun {
    pub(super) job: NodeKey,
    pub(super) run: RunRecord,
    pub(super) last: Option<JobEntry>,
}

impl ClaimedRun {
    /// Returns the newest run before it.
    pub(super) fn last(&self) -> Option<RunRecord> {
        self.last.as_ref().and_then(RunRecord::of)
    }
}
