//! The status of a job: what a majority of the nodes remembers, and what this replica has seen.

use super::inspect::read;
use crate::{JobStatus, tick::JobRunner};

impl JobRunner {
    pub(crate) async fn status(&self) -> JobStatus {
        let claims = &self.job.replica.claims;
        let shared_lock = !matches!(
            self.job.settings.overlap,
            crate::Overlap::Allow | crate::Overlap::UpTo(_)
        );
        let attempts = self.job.settings.max_attempts();
        let mut memory = read(&claims.redlock, &self.job.id, attempts, Some(shared_lock)).await;
        if let Some(state) = &mut memory.state
            && !shared_lock
        {
            state.free_in = None;
        }
        JobStatus {
            memory,
            next_tick: self.job.schedule.next_after(self.job.nodes_now()),
            skipped: self.job.journal.skipped(),
            others: self.job.journal.others(),
            clock_offset: claims.ahead().await,
        }
    }
}
