use std::{fmt, time::Duration};

use chrono::{DateTime, SecondsFormat, Utc};
use redlock_core::{FencingToken, JobState, NodeReport, Printable, RunRecord, RunState, Tick};

use super::{Backfill, BackfillEntry, backfill::ALREADY_OK};
use crate::{Outcome, clock::to_instant};

/// The nodes' memory of a job, as [`inspect`](crate::inspect) reads it.
///
/// Each part is the answer of a majority.
/// If too few nodes have answered a part, it is missing, and [`nodes`](Self::nodes) tells why.
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
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
/// assert!(job.is_known(), "too few nodes have answered: {:?}", job.nodes());
/// println!("newest claimed {:?}, paused: {:?}", job.watermark(), job.is_paused());
/// println!("running: {:?}, free in {:?}", job.running().is_some(), job.free_in());
/// println!("last: {:?}, last that ended well: {:?}", job.last_run(), job.last_success());
/// for run in job.runs() {
///     println!("{} on {}: {:?}", run.tick(), run.replica(), run.outcome());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JobMemory {
    /// Whether a majority has answered all that was asked.
    pub(crate) is_known: bool,
    /// The state under the job's own key.
    pub(crate) state: Option<JobState>,
    pub(crate) paused: Option<bool>,
    /// The run that goes on.
    pub(crate) running: Option<PastRun>,
    /// The newest first.
    pub(crate) runs: Vec<PastRun>,
    pub(crate) backfill: Option<Backfill>,
    pub(crate) nodes: Vec<NodeReport>,
}

/// A reason not to forget a job.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
/// match job.in_use() {
///     None => println!("nothing is known against forgetting it"),
///     Some(reason) => println!("it must stay for now: {reason}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum InUse {
    /// Too few nodes say whether it runs.
    Unknown,
    /// It runs.
    Runs {
        /// The replica.
        replica: Box<str>,
    },
    /// Its lock is held, though no run is known.
    Locked,
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("too few nodes say what they remember of it"),
            Self::Runs { replica } => write!(f, "it runs on {replica}"),
            Self::Locked => f.write_str("its lock is held, though no run is known"),
        }
    }
}

impl JobMemory {
    /// Returns whether a majority has answered all that was asked; otherwise a part may be missing.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Returns the newest tick that was claimed, as far as the answering nodes know; `None` also for a job that never
    /// ran.
    ///
    /// If a majority knows it, no replica can claim a tick up to it any more.
    pub fn watermark(&self) -> Option<DateTime<Utc>> {
        let watermark = self.state.as_ref().and_then(|state| state.watermark);
        watermark.map(to_instant)
    }

    /// Returns the last runs, the newest first: up to ten of ticks, ten of each further run of a tick, ten on request, and
    /// a hundred of backfills.
    ///
    /// Of runs that may [overlap](crate::Overlap::Allow), that of the latest tick or moment is the newest.
    /// Ticks that were claimed and not started, for example because the job was paused, are among them.
    pub fn runs(&self) -> &[PastRun] {
        &self.runs
    }

    /// Returns the newest run.
    pub fn last_run(&self) -> Option<&PastRun> {
        self.runs.first()
    }

    /// Returns the newest run that returned `Ok`.
    pub fn last_success(&self) -> Option<&PastRun> {
        self.runs.iter().find(|run| run.outcome() == Some("ok"))
    }

    /// Returns the run that was [requested](crate::request_run) at this moment; `None` if no replica has claimed it yet.
    ///
    /// If the request was skipped because another run went on, the run has the outcome `overlapping`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let moment = redlock_cron::request_run(&redlock, "billing", "close-day").await?;
    /// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
    /// assert!(job.requested(moment).is_none(), "no replica is up");
    /// # Ok(())
    /// # }
    /// ```
    pub fn requested(&self, moment: DateTime<Utc>) -> Option<&PastRun> {
        let mut runs = self.runs.iter().filter(|run| run.is_manual);
        runs.find(|run| !run.is_backfill() && run.tick() == moment)
    }

    /// Returns the [backfill](crate::request_backfill) that a replica has begun last; `None` if there was none.
    pub fn backfill(&self) -> Option<&Backfill> {
        self.backfill.as_ref()
    }

    /// Returns the run that goes on: its end is not recorded, and its lock is held, or may be held.
    ///
    /// If runs may [overlap](crate::Overlap::Allow), it is the newest run that goes on.
    pub fn running(&self) -> Option<&PastRun> {
        self.running.as_ref()
    }

    /// Returns the longest time until a majority lets the job's lock go if it is not renewed; zero if the lock is free,
    /// and `None` if that is not known.
    ///
    /// Runs that may overlap ([`Overlap::Allow`](crate::Overlap::Allow), [`Overlap::UpTo`](crate::Overlap::UpTo)) do not
    /// hold it; the [status](crate::JobStatus) of such a job has `None`.
    pub fn free_in(&self) -> Option<Duration> {
        self.state.as_ref().and_then(|state| state.free_in)
    }

    /// Returns whether the job is paused; `None` if too few nodes have said so.
    pub fn is_paused(&self) -> Option<bool> {
        self.paused
    }

    /// Returns why the job must not be [forgotten](crate::dangerous_forget) now; `None` if nothing is known against it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
    /// assert!(job.in_use().is_none(), "it never ran");
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_use(&self) -> Option<InUse> {
        if !self.is_known {
            return Some(InUse::Unknown);
        }
        if let Some(run) = &self.running {
            let replica = run.replica().into();
            return Some(InUse::Runs { replica });
        }
        let is_locked = self.free_in().is_none_or(|left| !left.is_zero());
        is_locked.then_some(InUse::Locked)
    }

    /// Returns whether a run of the tick is remembered that ended well.
    pub(crate) fn has_ended_well(&self, tick: DateTime<Utc>) -> bool {
        let is_of_tick = |run: &&PastRun| run.is_backfill() || !run.is_manual;
        let mut runs = self.runs.iter().filter(is_of_tick);
        runs.any(|run| run.tick() == tick && matches!(run.outcome(), Some("ok" | ALREADY_OK)))
    }

    /// Returns whether a majority remembers the same runs as in `before`.
    pub(crate) fn has_the_runs_of(&self, before: &Self) -> bool {
        let runs = |memory: &Self| {
            let runs = memory.runs.iter().map(|run| &run.record);
            runs.map(|run| (run.tick, run.token)).collect::<Vec<_>>()
        };
        self.watermark() == before.watermark() && runs(self) == runs(before)
    }

    /// Returns what each node contributed to the answer.
    pub fn nodes(&self) -> &[NodeReport] {
        &self.nodes
    }
}

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
    pub(crate) attempt: u32,
    pub(crate) is_manual: bool,
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
        self.attempt
    }

    /// Returns whether the run was requested.
    pub fn is_manual(&self) -> bool {
        self.is_manual
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
        match &self.record.state {
            RunState::Ended { outcome, .. } => Some(outcome.as_str()),
            _ => None,
        }
    }

    /// Returns whether it was requested, and skipped because another run went on: it had no lock of the job.
    pub(crate) fn was_skipped(&self) -> bool {
        self.outcome() == Some(Outcome::Overlapping.as_str())
    }

    /// Returns whether the end of the run is not recorded.
    pub(crate) fn is_open(&self) -> bool {
        self.outcome().is_none()
    }

    /// Returns the duration of the run, if it has ended.
    pub fn took(&self) -> Option<Duration> {
        match &self.record.state {
            RunState::Ended { took, .. } => Some(*took),
            _ => None,
        }
    }
}

/// One line: the tick, where it ran, and how it ended.
impl fmt::Display for PastRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tick = self.tick().to_rfc3339_opts(SecondsFormat::Secs, true);
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
                write!(f, ": {outcome} after {}", rounded(took))
            }
            _ => f.write_str(": no end is known"),
        }
    }
}

/// Returns whether a run was claimed and not started.
pub(crate) fn is_unstarted(run: &RunRecord) -> bool {
    matches!(&run.state, RunState::Ended { outcome, .. } if outcome.as_str() == RunRecord::UNSTARTED)
}

/// Writes a time to the millisecond.
pub(super) fn rounded(time: Duration) -> String {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    format!("{:?}", Duration::from_millis(millis))
}
