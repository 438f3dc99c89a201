//! Ticks that no replica started when they were due.
//!
//! The nodes remember the newest tick that was claimed, and the end of its run.
//! The ticks after that end were missed.
//! For a tick that came while the run went on, the overlap policy decides: it was skipped, or it was owed as well.
//! A tick that waited for the end of the run was missed if no replica started it then.

use std::ops::RangeInclusive;

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{RunRecord, Series};

use super::{context::JobContext, ledger::runs_by_hand};
use crate::{Missed, Overlap, clock::to_instant, job::is_made_up, record};

/// Returns since when ticks of this replica's schedule count as missed if no replica has started them.
///
/// If `last` was claimed under another schedule, this schedule promised no tick before this replica had the job: a
/// time before that was never due, even if it matches the pattern.
/// The one instant of a job that runs once is always promised, because the application has named it.
pub(super) fn promised_since(job: &JobContext, last: &RunRecord) -> DateTime<Utc> {
    let covered = covered(job, last);
    if job.schedule.is_once() || job.fingerprint.is_same_schedule(last.fingerprint) {
        covered
    } else {
        covered.max(job.added)
    }
}

/// Returns the ticks after one instant and before another that no run kept off, in order; of more than `most`, the
/// newest.
///
/// A run on request keeps ticks off like the run of a tick, and the nodes remember it under a key of its own.
pub(super) async fn not_skipped(
    job: &JobContext,
    after: DateTime<Utc>,
    before: DateTime<Utc>,
    most: usize,
) -> Vec<DateTime<Utc>> {
    let during = kept_off(job, after, before).await;
    job.schedule
        .between_without(after, before, most, &during)
        .await
}

/// Returns when runs of the job kept ticks off, if a tick came after `after` and before `before`.
pub(super) async fn kept_off(
    job: &JobContext,
    after: DateTime<Utc>,
    before: DateTime<Utc>,
) -> Vec<RangeInclusive<DateTime<Utc>>> {
    // Most of the time there is no tick.
    if job.schedule.latest_before(before) <= Some(after) {
        return Vec::new();
    }
    if matches!(job.settings.overlap, Overlap::Allow | Overlap::CancelOther) {
        // A tick that comes then starts beside the run, or ends it.
        return Vec::new();
    }
    let Some(record) = job.record().await else {
        return Vec::new();
    };
    let by_hand = runs_by_hand(&record).into_iter();
    match job.settings.overlap {
        Overlap::UpTo(most) => {
            // Further attempts began later.
            let of_ticks = record.of(Series::TICKS).runs.iter();
            let runs = of_ticks.filter(|run| run.attempt == 1).cloned();
            let runs = runs.chain(by_hand);
            let runs = runs.filter_map(|run| Some(to_instant(run.tick)..=end_of(&run)?));
            full(runs.collect(), most)
        }
        _ => by_hand
            .map(|run| to_instant(run.tick)..=covered(job, &run))
            .collect(),
    }
}

/// Returns when at least `most` of these runs went on.
fn full(
    mut runs: Vec<RangeInclusive<DateTime<Utc>>>,
    most: usize,
) -> Vec<RangeInclusive<DateTime<Utc>>> {
    runs.sort_by_key(|run| *run.start());
    let nth_end = |begun: &[RangeInclusive<DateTime<Utc>>]| {
        let last = begun.last()?;
        let mut ends: Vec<_> = begun.iter().map(RangeInclusive::end).collect();
        ends.sort();
        let end = **ends.get(ends.len().checked_sub(most)?)?;
        Some(*last.start()..=end).filter(|full| !full.is_empty())
    };
    let begun = 1..=runs.len();
    begun.filter_map(|count| nth_end(&runs[..count])).collect()
}

/// Returns up to when ticks were claimed, or came while a run went on that they did not wait for.
///
/// It counts from the tick, not from when its run was claimed: of ticks that are made up for long after, the
/// first does not stand for the others.
pub(super) fn covered(job: &JobContext, last: &RunRecord) -> DateTime<Utc> {
    let tick = to_instant(last.tick);
    let Some(end) = end_of(last) else {
        return tick;
    };
    match job.settings.overlap {
        // It began long after its tick, and those that came then wait for its end, whatever the policy is.
        _ if is_made_up(last.fingerprint) => tick,
        Overlap::Wait if matches!(job.settings.missed, Missed::All { .. }) => tick,
        // Those that came later than this could still be waiting when it ended.
        Overlap::Wait => {
            let waiting = TimeDelta::from_std(job.settings.start_within).ok();
            let until = waiting.and_then(|waiting| end.checked_sub_signed(waiting));
            until.unwrap_or(tick).max(tick)
        }
        Overlap::Skip => end,
        // They start beside it or end it; places that were taken keep ticks off in another way.
        Overlap::Allow | Overlap::UpTo(_) | Overlap::CancelOther => tick,
    }
}

/// Returns when a run ended if it began at its tick; `None` if that is not known.
fn end_of(run: &RunRecord) -> Option<DateTime<Utc>> {
    let (_, took) = record::end_of(run)?;
    let took = TimeDelta::from_std(took).ok()?;
    to_instant(run.tick).checked_add_signed(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_while_as_many_runs_go_on() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let runs = [(0, 10), (5, 30), (8, 9), (20, 25)].map(|(from, to)| at(from)..=at(to));
        let full = |most| super::full(runs.to_vec(), most);
        assert_eq!(full(2), [at(5)..=at(10), at(8)..=at(10), at(20)..=at(25)]);
        assert_eq!(full(3), [at(8)..=at(9)]);
        assert_eq!(full(4), []);
    }
}
