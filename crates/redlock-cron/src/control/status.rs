//! What can be said of a job: what a majority of the nodes remembers, and what this replica has seen.

use super::inspect::{add, further_runs, newest_first};
use crate::{JobStatus, clock::to_instant, tick::JobRunner};

impl JobRunner {
    pub(crate) async fn status(&self) -> JobStatus {
        let claims = &self.replica.claims;
        // A job's key is always valid, and then this is no error.
        let first = claims.redlock.job_status(self.id.job_key()).await.ok();
        let nodes = first.as_ref().map(|status| status.reports().to_vec());
        let first = first.and_then(|status| status.state().cloned());
        let attempts = self.terms.max_attempts;
        let mut runs = further_runs(&claims.redlock, &self.id, attempts).await;
        let is_known = first.is_some();
        let (watermark, free_in) = match first {
            Some(state) => {
                add(&mut runs, state.runs, 1, false);
                (state.watermark, state.free_in)
            }
            None => (None, None),
        };
        let shared_lock = self.terms.overlap != crate::Overlap::Allow;
        newest_first(&mut runs);
        JobStatus {
            is_known,
            watermark: watermark.map(to_instant),
            free_in: free_in.filter(|_| shared_lock),
            paused: self.is_paused().await,
            runs,
            next_tick: self.schedule.next_after(self.now()),
            skipped: self.journal.skipped(),
            others: self.journal.others(),
            clock_offset: claims.ahead().await,
            nodes: nodes.unwrap_or_default(),
        }
    }
}
