//! The attempts of a tick that were used up.

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use redlock_core::{ResourceKey, RunRecord, RunState};

use super::runner::JobRunner;
use crate::{Outcome, clock::to_tick};

/// The numbers of a tick's runs that did not end by themselves.
pub(super) struct Used {
    pub(super) attempts: u32,
    /// How many were dropped without a recorded outcome, for example in a crash.
    pub(super) crashes: u32,
    pub(super) is_last_a_crash: bool,
}

impl JobRunner {
    /// Returns the numbers of a tick's runs up to the `attempt`-th, all of which were cut short; `None` if too few
    /// nodes answered.
    pub(super) async fn used(&self, tick: DateTime<Utc>, attempt: u32) -> Option<Used> {
        let reads = (1..=attempt).map(|each| self.replica.claims.read(self.attempt_key(each)));
        let mut used = Used {
            attempts: 0,
            crashes: 0,
            is_last_a_crash: false,
        };
        for state in join_all(reads).await {
            let mut runs = state?.runs.into_iter();
            let run = runs.find(|run| Some(run.tick) == to_tick(tick));
            let ended = run.as_ref().map(|run| match &run.state {
                RunState::Ended { outcome, .. } => outcome.as_str(),
                _ => RunRecord::DROPPED,
            });
            used.is_last_a_crash = ended == Some(RunRecord::DROPPED);
            used.crashes += u32::from(used.is_last_a_crash);
            used.attempts += u32::from(!ended.is_some_and(is_by_a_shutdown));
        }
        Some(used)
    }

    /// Returns whether the `attempt`-th run of the tick was claimed; `None` if too few nodes answered.
    pub(super) async fn is_claimed(&self, tick: DateTime<Utc>, attempt: u32) -> Option<bool> {
        let state = self.replica.claims.read(self.attempt_key(attempt)).await?;
        Some(state.watermark == to_tick(tick))
    }

    /// Returns the key of the `attempt`-th run of each tick.
    pub(super) fn attempt_key(&self, attempt: u32) -> ResourceKey {
        match attempt {
            1 => self.id.job_key(),
            _ => self.id.attempt_key(attempt),
        }
    }
}

/// Returns whether the outcome `ended` is that of a run which a shutdown ended, or the removal of its job.
fn is_by_a_shutdown(ended: &str) -> bool {
    [Outcome::Aborted, Outcome::Draining, Outcome::Removed]
        .iter()
        .any(|outcome| outcome.as_str() == ended)
}
