//! The agreement of replicas on a job: its schedule and its policies, as the nodes remember them with each run.

use std::time::Duration;

use redlock_core::RunRecord;

use super::runner::JobRunner;
use crate::{
    SetupError,
    clock::{lag, to_instant},
};

impl JobRunner {
    /// Refuses a job that was run under another configuration, at most `within` ago.
    pub(crate) async fn check_agreement(&self, within: Duration) -> Result<(), SetupError> {
        let Some(state) = self.replica.claims.read(self.id.job_key()).await else {
            let job = &**self.id.name();
            tracing::warn!(target: crate::TARGET, job, "too few nodes said whether other replicas agree on it");
            return Ok(());
        };
        let is_other = |run: &&RunRecord| {
            let age = lag(to_instant(run.tick), self.nodes_now());
            !self.fingerprint.is_same(run.fingerprint) && age <= within
        };
        match state.runs.iter().find(is_other) {
            Some(run) => Err(SetupError::disagreement(run, within)),
            None => Ok(()),
        }
    }

    /// Warns if a run was claimed under another configuration.
    pub(crate) fn compare(&self, run: Option<&RunRecord>) {
        let Some(run) = run else { return };
        self.turns.heard_of(run);
        if self.journal.differs(run, self.fingerprint) {
            tracing::warn!(
                target: crate::TARGET, job = &**self.id.name(),
                replica = %run.replica,
                tick = %run.tick,
                "a replica has another schedule or other policies for this job; \
                 after a deployment this is to be expected once"
            );
        }
    }
}
