//! Ticks that no replica started when they were due.
//!
//! The nodes remember the newest tick that was claimed, and the end of its run.
//! The ticks after that end were missed.
//! For a tick that came while the run went on, the overlap policy decides.
//! A tick that waited for the end of the run was missed if no replica started it then.

use std::{ops::RangeInclusive, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{RunRecord, RunState};

use super::context::JobContext;
use crate::{Missed, Overlap, clock::to_instant, job::is_made_up};

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

/// Returns the ticks after one instant and before another that did not come during a run on request, in order; of
/// more than `most`, the newest.
///
/// A run on request keeps ticks off like the run of a tick, and the nodes remember it under a key of its own.
pub(super) async fn not_skipped(
    job: &JobContext,
    after: DateTime<Utc>,
    before: DateTime<Utc>,
    most: usize,
) -> Vec<DateTime<Utc>> {
    let during = runs_on_request(job, after, before).await;
    job.schedule
        .between_without(after, before, most, &during)
        .await
}

/// Returns when runs on request went on, if they keep ticks off and a tick came after `after` and before `before`.
pub(super) async fn runs_on_request(
    job: &JobContext,
    after: DateTime<Utc>,
    before: DateTime<Utc>,
) -> Vec<RangeInclusive<DateTime<Utc>>> {
    let skips = !matches!(job.settings.overlap, Overlap::Allow | Overlap::UpTo(_));
    // Most of the time there is no tick.
    if skips
        && job.schedule.latest_before(before) > Some(after)
        && let Some(runs) = job.runs_by_hand().await
    {
        let runs = runs.iter();
        return runs
            .map(|run| to_instant(run.tick)..=covered(job, run))
            .collect();
    }
    Vec::new()
}

/// Returns up to when ticks were claimed, or came while a run went on that they did not wait for.
///
/// It counts from the tick, not from when its run was claimed: of ticks that are made up for long after, the
/// first does not stand for the others.
pub(super) fn covered(job: &JobContext, last: &RunRecord) -> DateTime<Utc> {
    let tick = to_instant(last.tick);
    let RunState::Ended { took, .. } = &last.state else {
        return tick;
    };
    let took = match job.settings.overlap {
        // It began long after its tick, and those that came then wait for its end, whatever the policy is.
        _ if is_made_up(last.fingerprint) => Duration::ZERO,
        Overlap::Wait if matches!(job.settings.missed, Missed::All { .. }) => Duration::ZERO,
        // Those that came later than this could still be waiting when it ended.
        Overlap::Wait => took.saturating_sub(job.settings.start_within),
        _ => *took,
    };
    let took = TimeDelta::from_std(took).ok();
    took.and_then(|took| tick.checked_add_signed(took))
        .unwrap_or(tick)
}
