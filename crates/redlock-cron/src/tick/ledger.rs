//! The record of a job, read: its ticks and runs, without a further question to the nodes.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use redlock_core::{FencingToken, JobRecord, JobState, RunRecord, Series, Tick, ledger::TickLine};

use crate::{
    Outcome,
    clock::{lag, to_instant, to_tick},
    job::series::{BACKFILLED, MANUAL, REQUEST_LIFETIME, REQUESTED},
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

/// Returns the runs that were asked for, here or of all replicas, each at the moment when it began; the newest first where
/// they have one lock.
pub(super) fn runs_by_hand(record: &JobRecord) -> Vec<RunRecord> {
    let was_skipped = |run: &&RunRecord| is_outcome(run, Outcome::Overlapping.as_str());
    let by_hand = |series| [MANUAL, REQUESTED].contains(&series);
    let runs = record.runs(by_hand).filter(|run| !was_skipped(run));
    let mut runs: Vec<_> = runs.cloned().collect();
    for run in &mut runs {
        run.tick = begun(run.tick, run.claimed_at);
    }
    runs.sort_by_key(|run| Reverse(run.token));
    runs
}

/// Returns when a run began that was asked for at this moment, and claimed at that time by its replica's clock.
///
/// Replicas may start it as long as the request lasts, and it keeps off only the ticks that come from then on.
/// A clock that is off by more than that does not count.
fn begun(moment: Tick, claimed_at: u64) -> Tick {
    let claimed = Tick::from_millis(claimed_at).filter(|claimed| *claimed > moment);
    let in_time =
        |claimed: &Tick| lag(to_instant(moment), to_instant(*claimed)) <= REQUEST_LIFETIME;
    claimed.filter(in_time).unwrap_or(moment)
}

/// Returns whether the newest run of a backfill has no recorded end, and a greater token than this.
pub(super) fn runs_backfill_after(record: &JobRecord, token: Option<FencingToken>) -> bool {
    let runs = record.of(BACKFILLED).runs.iter();
    let newest = runs.max_by_key(|run| run.token);
    newest.is_some_and(|run| run.is_open() && Some(run.token) > token)
}

/// Returns the lines of ticks and of the ticks of backfills.
pub(crate) fn lines_of_ticks(record: &JobRecord) -> Vec<TickLine> {
    let ticks = lines(record, Series::TICKS);
    ticks.chain(lines(record, BACKFILLED)).collect()
}

/// Returns the lines of a series of ticks, the newest first.
pub(super) fn lines(record: &JobRecord, series: Series) -> impl Iterator<Item = TickLine> {
    record.of(series).runs.iter().map(line_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_run_keeps_off_what_comes_from_its_begin_on_and_not_from_its_request_on() {
        let moment = Tick::from_millis(1_000_000).unwrap();
        for (claimed_at, begun) in [
            (1_000_020, 1_000_020),
            (1_060_000, 1_060_000),
            // By clocks that are wrong.
            (1_060_001, 1_000_000),
            (999_000, 1_000_000),
        ] {
            let begun = Tick::from_millis(begun).unwrap();
            assert_eq!(super::begun(moment, claimed_at), begun, "{claimed_at}");
        }
    }
}
