//! The record of a job, read: its ticks and runs, without a further question to the nodes.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use redlock_core::{FencingToken, JobRecord, JobState, RunRecord, Series, ledger::TickLine};

use crate::{
    Outcome,
    clock::to_tick,
    job::series::{BACKFILLED, MANUAL, REQUESTED},
    record::{is_outcome, is_unstarted, line_of},
};

/// Returns the first run of the newest tick, as far as it is remembered; its further attempts begin after it has ended.
pub(super) fn first_of_newest(ticks: &JobState) -> Option<&RunRecord> {
    let newest = ticks.runs.first()?.tick;
    ticks
        .runs
        .iter()
        .take_while(|run| run.tick == newest)
        .last()
}

/// Returns the runs of a tick, the newest attempt first.
pub(super) fn runs_of(
    record: &JobRecord,
    tick: DateTime<Utc>,
) -> impl DoubleEndedIterator<Item = &RunRecord> {
    let runs = record.of(Series::TICKS).runs.iter();
    runs.filter(move |run| Some(run.tick) == to_tick(tick))
}

/// Returns whether a run of the tick was claimed after the `attempt`-th, and may have begun.
///
/// So it is if another replica had heard of a claim that no majority confirmed, before this one's.
pub(super) fn is_started_again(record: &JobRecord, tick: DateTime<Utc>, attempt: u32) -> bool {
    let mut runs = runs_of(record, tick);
    runs.any(|run| u32::from(run.attempt) > attempt && !is_unstarted(run))
}

/// Returns the runs that were asked for, here or of all replicas, the newest first where they have one lock.
pub(super) fn runs_by_hand(record: &JobRecord) -> Vec<&RunRecord> {
    let was_skipped = |run: &&RunRecord| is_outcome(run, Outcome::Overlapping.as_str());
    let by_hand = |series| [MANUAL, REQUESTED].contains(&series);
    let runs = record.runs(by_hand).filter(|run| !was_skipped(run));
    let mut runs: Vec<_> = runs.collect();
    runs.sort_by_key(|run| Reverse(run.token));
    runs
}

/// Returns whether the newest run of a backfill has no recorded end, and a greater token than this.
pub(super) fn runs_backfill_after(record: &JobRecord, token: Option<FencingToken>) -> bool {
    let runs = record.of(BACKFILLED).runs.iter();
    let newest = runs.max_by_key(|run| run.token);
    newest.is_some_and(|run| run.is_open() && Some(run.token) > token)
}

/// Returns the lines of a series of ticks, the newest first.
pub(super) fn lines(record: &JobRecord, series: Series) -> impl Iterator<Item = TickLine> {
    record.of(series).runs.iter().map(line_of)
}
