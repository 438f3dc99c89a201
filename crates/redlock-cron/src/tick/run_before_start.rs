//! The run that went on when this replica got the job: the ticks that came during it are skipped.

use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use redlock_core::{JobRecord, Series, Tick};

use super::{
    context::JobContext,
    ledger::{first_of_newest, runs_by_hand},
    missed::covered,
};
use crate::{clock::to_instant, job::is_made_up};

/// The run that went on when this replica got the job, as long as no later one is known.
#[derive(Debug, Default)]
pub(super) struct OpenRun(Mutex<Option<OpenRunKey>>);

/// The run that went on when this replica got the job.
#[derive(Clone, Copy, Debug)]
enum OpenRunKey {
    /// The run of a tick.
    OfTick(Tick),
    /// The run that was requested at this moment.
    OnRequest(Tick),
}

/// The relation of a tick to the run that went on when this replica got the job.
pub(super) enum TickRelation {
    /// The run has no effect on the tick.
    Nothing,
    /// The run goes on, and its effect on the tick is not known before its end.
    Open,
    /// The tick came while the run went on.
    Skipped,
}

impl OpenRun {
    /// Finds the run that goes on, and notes it; `last` is the newest run of a tick.
    pub(super) fn find(&self, record: &JobRecord) {
        let last = first_of_newest(record.of(Series::TICKS));
        let manual = runs_by_hand(record);
        let manual = manual.first();
        let runs = last.map(|run| (run, OpenRunKey::OfTick(run.tick)));
        let runs = runs.into_iter();
        let runs = runs.chain(manual.map(|run| (run, OpenRunKey::OnRequest(run.tick))));
        let open = runs.filter(|(run, _)| run.is_open());
        // All of them have one lock, which the last has.
        let newest = open.max_by_key(|(run, _)| run.token);
        *self.0.lock() = newest.map(|(_, found)| found);
    }

    /// Returns the relation of a tick to the run that went on when this replica got the job.
    ///
    /// Ticks that came during this run are skipped.
    /// Replicas that had the job when such a tick came have skipped it, which this replica did not see.
    pub(super) async fn relation(&self, job: &JobContext, tick: DateTime<Utc>) -> TickRelation {
        let found = *self.0.lock();
        let Some(found) = found else {
            return TickRelation::Nothing;
        };
        let Some(record) = job.record().await else {
            // The claim is refused for the same reason, and says it.
            return TickRelation::Nothing;
        };
        match found {
            OpenRunKey::OfTick(found) => self.relation_to_run(job, found, &record, tick),
            OpenRunKey::OnRequest(moment) => self.relation_to_request(job, moment, &record, tick),
        }
    }

    fn relation_to_run(
        &self,
        job: &JobContext,
        found: Tick,
        record: &JobRecord,
        tick: DateTime<Utc>,
    ) -> TickRelation {
        let ticks = record.of(Series::TICKS);
        match first_of_newest(ticks) {
            Some(run) if run.tick != found || is_made_up(run.fingerprint) => {
                *self.0.lock() = None;
                TickRelation::Nothing
            }
            // Without its lock, it was cut short.
            Some(run) if run.is_open() && ticks.free_in != Some(Duration::ZERO) => {
                TickRelation::Open
            }
            Some(run) if tick <= covered(job, run) => TickRelation::Skipped,
            _ => TickRelation::Nothing,
        }
    }

    fn relation_to_request(
        &self,
        job: &JobContext,
        moment: Tick,
        record: &JobRecord,
        tick: DateTime<Utc>,
    ) -> TickRelation {
        if tick < to_instant(moment) {
            return TickRelation::Nothing;
        }
        let ticks = record.of(Series::TICKS);
        let Some(run) = runs_by_hand(record)
            .into_iter()
            .find(|run| run.tick == moment)
        else {
            *self.0.lock() = None;
            return TickRelation::Nothing;
        };
        if run.is_open() {
            let is_locked = ticks.free_in != Some(Duration::ZERO);
            let newest = ticks.runs.first().filter(|newest| newest.is_open());
            let is_another = newest.is_some_and(|newest| newest.token > run.token);
            return if is_locked && !is_another {
                TickRelation::Open
            } else {
                TickRelation::Nothing
            };
        }
        let covered = covered(job, &run);
        if ticks.watermark.map(to_instant) > Some(covered) {
            *self.0.lock() = None;
        }
        if tick <= covered {
            TickRelation::Skipped
        } else {
            TickRelation::Nothing
        }
    }

    /// Returns whether the tick came in a run on request that went on when this replica got the job, as far as it knows.
    pub(super) fn may_keep_off(&self, tick: DateTime<Utc>) -> bool {
        match *self.0.lock() {
            Some(OpenRunKey::OnRequest(moment)) => to_instant(moment) <= tick,
            _ => false,
        }
    }
}
