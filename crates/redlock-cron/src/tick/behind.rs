//! The run that went on when this replica got the job: the ticks that came during it are skipped.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use redlock_core::{JobState, RunRecord, Tick};

use super::{found::Found, runner::JobRunner};
use crate::{clock::to_instant, job::is_made_up};

/// The relation of a tick to the run that went on when this replica got the job.
pub(crate) enum Behind {
    /// The run has no effect on the tick.
    Nothing,
    /// The run goes on, and its effect on the tick is not known before its end.
    Open,
    /// The tick came while the run went on.
    Skipped,
}

impl JobRunner {
    /// Finds the run that goes on, and notes it; `last` is the newest run of a tick.
    pub(crate) async fn find_open(&self, last: Option<&RunRecord>) {
        let manual = self.replica.claims.read(self.id.manual_key()).await;
        let manual = manual.as_ref().and_then(|state| state.runs.first());
        let runs = last.map(|run| (run, Found::OfTick(run.tick)));
        let runs = runs.into_iter();
        let runs = runs.chain(manual.map(|run| (run, Found::OnRequest(run.tick))));
        let open = runs.filter(|(run, _)| run.is_open());
        // All of them have one lock, which the last has.
        let newest = open.max_by_key(|(run, _)| run.token);
        self.found_open(newest.map(|(_, found)| found));
    }

    /// Returns the relation of a tick to the run that went on when this replica got the job.
    ///
    /// Ticks that came during this run are skipped.
    /// Replicas that had the job when such a tick came have skipped it, which this replica did not see.
    pub(crate) async fn behind_run(&self, tick: DateTime<Utc>) -> Behind {
        let found = *self.open_at_first();
        let Some(found) = found else {
            return Behind::Nothing;
        };
        let Some(state) = self.replica.claims.read(self.id.job_key()).await else {
            // The claim is refused for the same reason, and says it.
            return Behind::Nothing;
        };
        match found {
            Found::OfTick(found) => self.behind_run_of(found, &state, tick),
            Found::OnRequest(moment) => self.behind_request(moment, &state, tick).await,
        }
    }

    fn behind_run_of(&self, found: Tick, state: &JobState, tick: DateTime<Utc>) -> Behind {
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

    async fn behind_request(&self, moment: Tick, state: &JobState, tick: DateTime<Utc>) -> Behind {
        if tick < to_instant(moment) {
            return Behind::Nothing;
        }
        // Read after the lock, because the run releases the lock at its end.
        let Some(manual) = self.replica.claims.read(self.id.manual_key()).await else {
            return Behind::Nothing;
        };
        let Some(run) = manual.runs.iter().find(|run| run.tick == moment) else {
            self.found_open(None);
            return Behind::Nothing;
        };
        if run.is_open() {
            let is_locked = state.free_in != Some(Duration::ZERO);
            let newest = state.runs.first().filter(|newest| newest.is_open());
            let is_another = newest.is_some_and(|newest| newest.token > run.token);
            return if is_locked && !is_another {
                Behind::Open
            } else {
                Behind::Nothing
            };
        }
        let covered = self.covered(run);
        if state.watermark.map(to_instant) > Some(covered) {
            self.found_open(None);
        }
        if tick <= covered {
            Behind::Skipped
        } else {
            Behind::Nothing
        }
    }

    /// Returns whether the tick came in a run on request that went on when this replica got the job, as far as it knows.
    pub(crate) fn may_be_kept_off(&self, tick: DateTime<Utc>) -> bool {
        match *self.open_at_first() {
            Some(Found::OnRequest(moment)) => to_instant(moment) <= tick,
            _ => false,
        }
    }

    /// Notes the run that goes on; `None` if no run goes on in which ticks are skipped.
    fn found_open(&self, run: Option<Found>) {
        *self.open_at_first() = run;
    }

    fn open_at_first(&self) -> MutexGuard<'_, Option<Found>> {
        // Nothing panics while the lock is held.
        let open = self.open_at_first.lock();
        open.unwrap_or_else(PoisonError::into_inner)
    }
}
