//! The status of a job: what a majority of the nodes remembers, and what this replica has seen.

use super::inspect::read;
use crate::{JobStatus, clock::to_instant, tick::JobRunner};

impl JobRunner {
    pub(crate) async fn status(&self) -> JobStatus {
        let claims = &self.replica.claims;
        let shared_lock = !matches!(
            self.settings.overlap,
            crate::Overlap::Allow | crate::Overlap::UpTo(_)
        );
        let attempts = self.settings.max_attempts();
        let memory = read(&claims.redlock, &self.id, attempts, Some(shared_lock)).await;
        let state = memory.state.as_ref();
        let free_in = state.and_then(|state| state.free_in);
        JobStatus {
            is_known: memory.is_known,
            is_lock_known: state.is_some(),
            watermark: state.and_then(|state| state.watermark).map(to_instant),
            free_in: free_in.filter(|_| shared_lock),
            paused: memory.paused,
            running: memory.running,
            runs: memory.runs,
            next_tick: self.schedule.next_after(self.nodes_now()),
            skipped: self.journal.skipped(),
            others: self.journal.others(),
            clock_offset: claims.ahead().await,
            nodes: memory.nodes,
        }
    }
}
