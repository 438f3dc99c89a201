use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};
use redlock_core::{
    FencingToken, Note, Printable, Rounded, RunRecord, Series, Tick, ledger::TickLine,
};

use super::{
    backfill::{ALREADY_OK, BackfillEntry, USED_UP},
    outcome::{cut_short_outcomes, end_of, is_outcome},
};
use crate::{
    Outcome,
    clock::{to_instant, to_tick, written},
};

/// A run as the nodes remember it.
///
/// # Examples
///
/// ```
/// # use redlock_cron::{BoxError, SingletonJob, SingletonScheduler};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// # let jobs = SingletonScheduler::standalone(redlock).namespace("billing").replica("pod-7").build()?;
/// # jobs.add(SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", |_| async { Ok::<(), BoxError>(()) })).await?;
/// jobs.trigger_now("close-day").await?;
/// for run in jobs.status("close-day").await?.runs() {
///     println!(
///         "{} attempt {} on {}, claimed at {}, token {}: {} after {:?}",
///         run.tick(),
///         run.attempt(),
///         run.replica(),
///         run.claimed_at(),
///         run.fencing_token(),
///         run.outcome().unwrap_or("it goes on, or its end is not recorded"),
///         run.took(),
///     );
///     assert!(run.is_manual());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PastRun {
    pub(crate) record: RunRecord,
}

impl PastRun {
    /// Returns the tick, or the moment of the request for the run.
    pub fn tick(&self) -> DateTime<Utc> {
        match BackfillEntry::of(&self.record) {
            Some(BackfillEntry::Run(tick)) => tick,
            _ => to_instant(self.record.tick),
        }
    }

    /// Returns whether it is the run of a tick of a [backfill](crate::request_backfill).
    pub fn is_backfill(&self) -> bool {
        matches!(BackfillEntry::of(&self.record), Some(BackfillEntry::Run(_)))
    }

    /// Returns the number of the run among the runs of its tick: 1 is the first.
    pub fn attempt(&self) -> u32 {
        self.record.attempt.into()
    }

    /// Returns whether the run was requested.
    pub fn is_manual(&self) -> bool {
        self.record.series != Series::TICKS
    }

    /// Returns the replica of the run.
    pub fn replica(&self) -> &str {
        self.record.replica.as_str()
    }

    /// Returns its fencing token.
    pub fn fencing_token(&self) -> FencingToken {
        self.record.token
    }

    /// Returns the time of the claim, by its replica's clock.
    pub fn claimed_at(&self) -> DateTime<Utc> {
        Tick::from_millis(self.record.claimed_at).map_or(DateTime::<Utc>::MAX_UTC, to_instant)
    }

    /// Returns how the run ended, as [`Outcome::as_str`](crate::Outcome::as_str) names it, or `dropped` or `unstarted`;
    /// `None` if its end is not recorded.
    pub fn outcome(&self) -> Option<&str> {
        end_of(&self.record).map(|(outcome, _)| outcome)
    }

    /// Returns what is remembered of its end besides the outcome: the text of its error if the job
    /// [remembers errors](crate::SingletonJob::remember_errors), or the operator that [stopped](crate::stop()) it, and the reason.
    pub fn note(&self) -> Option<&str> {
        self.record.note.as_ref().map(Note::as_str)
    }

    /// Returns why the tick or the request was not started, in words for people; `None` if its run was started.
    pub fn why_not_started(&self) -> Option<&'static str> {
        let outcome = self.outcome()?;
        let reasons = [
            (Outcome::Paused.as_str(), "paused"),
            (Outcome::Overlapping.as_str(), "another run went on"),
            (Outcome::Draining.as_str(), "its replica was shut down"),
            (Outcome::Removed.as_str(), "its replica removed the job"),
            (Outcome::GivenUp.as_str(), "given up after its attempts"),
            (ALREADY_OK, "a run of it had ended well"),
            (USED_UP, "left to a backfill"),
            (RunRecord::UNSTARTED, "its replica gave its claim back"),
        ];
        let mut reasons = reasons.into_iter();
        reasons.find_map(|(word, why)| (outcome == word).then_some(why))
    }

    /// Returns whether it was requested, and skipped because another run went on: it had no lock of the job.
    pub(crate) fn was_skipped(&self) -> bool {
        self.outcome() == Some(Outcome::Overlapping.as_str())
    }

    /// Returns whether it never had the lock of the job: it was skipped, or uses up a tick that a backfill runs.
    pub(crate) fn had_no_lock(&self) -> bool {
        self.was_skipped() || self.outcome() == Some(USED_UP)
    }

    /// Returns whether the end of the run is not recorded.
    pub(crate) fn is_open(&self) -> bool {
        self.outcome().is_none()
    }

    /// Returns the duration of the run, if it has ended.
    pub fn took(&self) -> Option<Duration> {
        end_of(&self.record).map(|(_, took)| took)
    }
}

/// One line: the tick, where it ran, and how it ended; or why it was not started.
impl fmt::Display for PastRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tick = written(self.tick());
        if let Some(why) = self.why_not_started() {
            let what = match self.is_manual() && !self.is_backfill() {
                true => "request",
                false => "tick",
            };
            return write!(f, "{what} {tick}: not started, {why}");
        }
        write!(f, "{tick} on {}", Printable::new(self.replica()))?;
        if self.attempt() > 1 {
            write!(f, ", attempt {}", self.attempt())?;
        }
        if self.is_backfill() {
            f.write_str(", backfill")?;
        } else if self.is_manual() {
            f.write_str(", by hand")?;
        }
        match (self.outcome(), self.took()) {
            (Some(outcome), Some(took)) => {
                let outcome = Printable::new(outcome);
                write!(f, ": {outcome} after {}", Rounded(took))?;
                match self.note() {
                    Some(note) => write!(f, ": {}", Printable::new(note)),
                    None => Ok(()),
                }
            }
            _ => f.write_str(": no end is known"),
        }
    }
}

/// Returns the line of a run in decisions about its tick, which for a run of a backfill is the scheduled one.
pub(crate) fn line_of(run: &RunRecord) -> TickLine {
    let line = run.line(&cut_short_outcomes(), &[Outcome::Ok.as_str(), ALREADY_OK]);
    match BackfillEntry::of(run) {
        Some(BackfillEntry::Run(tick)) => TickLine {
            tick: to_tick(tick).unwrap_or(line.tick),
            ..line
        },
        _ => line,
    }
}

/// Returns whether a run was claimed and not started.
pub(crate) fn is_unstarted(run: &RunRecord) -> bool {
    is_outcome(run, RunRecord::UNSTARTED)
}
