//! The run that went on when this replica got the job: the ticks that came during it are skipped.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use redlock_core::Tick;

use super::runner::JobRunner;
use crate::job::is_made_up;

/// How a tick stands to the run that went on when this replica got the job.
pub(crate) enum Behind {
    /// It has nothing to do with it.
    Nothing,
    /// The run goes on, and until its end nobody can say.
    Open,
    /// It came while the run went on.
    Skipped,
}

impl JobRunner {
    /// Returns how a tick stands to the run that went on when this replica got the job, and in which ticks are skipped.
    ///
    /// Replicas that had the job when such a tick came have skipped it, which this one did not see.
    pub(crate) async fn behind_run(&self, tick: DateTime<Utc>) -> Behind {
        let found = *self.open_at_first();
        let Some(found) = found else {
            return Behind::Nothing;
        };
        let Some(state) = self.replica.claims.read(self.id.job_key()).await else {
            // The claim is refused for the same reason, and says it.
            return Behind::Nothing;
        };
        match state.runs.first() {
            Some(run) if run.tick != found || is_made_up(run.fingerprint) => {
                self.found_open(None);
                Behind::Nothing
            }
            // Without its lock, it was cut short.
            Some(run) if run.is_open() && state.free_in != Some(Duration::ZERO) => Behind::Open,
            Some(run) if tick <= self.covered(run) => Behind::Skipped,
            _ => Behind::Nothing,
        }
    }

    /// Notes the run that goes on, or that none does whose ticks are skipped.
    pub(crate) fn found_open(&self, run: Option<Tick>) {
        *self.open_at_first() = run;
    }

    fn open_at_first(&self) -> MutexGuard<'_, Option<Tick>> {
        // Nothing panics while the lock is held.
        let open = self.open_at_first.lock();
        open.unwrap_or_else(PoisonError::into_inner)
    }
}
