use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{FencingToken, NodeReport, RunRecord, RunState, Tick};

use crate::{TickReport, clock::to_instant};

/// The status of a job: the nodes' memory of it, and what this replica has seen of it.
///
/// The part from the nodes is the word of a majority.
/// A part that too few nodes answered is missing, and then [`nodes`](Self::nodes) tells why.
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
/// let status = jobs.status("close-day").await?;
/// assert!(status.is_known(), "too few nodes have answered: {:?}", status.nodes());
/// println!("next at {:?}, newest claimed {:?}", status.next_tick(), status.watermark());
/// println!("running: {:?}, free in {:?}", status.running().is_some(), status.free_in());
/// println!("paused: {:?}, others disagree: {}", status.is_paused(), status.disagreeing());
/// println!("skipped here: {:?}, clock ahead by {:?}", status.skipped(), status.clock_offset());
/// let last = status.last_success().ok_or("alert: it never succeeded")?;
/// # assert_eq!(status.last_run().map(|run| run.tick()), Some(last.tick()));
/// # assert_eq!(status.runs().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JobStatus {
    pub(crate) is_known: bool,
    /// Whether a majority has answered under the job's own key.
    pub(crate) is_lock_known: bool,
    pub(crate) watermark: Option<DateTime<Utc>>,
    pub(crate) free_in: Option<Duration>,
    pub(crate) paused: Option<bool>,
    pub(crate) running: Option<PastRun>,
    pub(crate) runs: Vec<PastRun>,
    pub(crate) next_tick: Option<DateTime<Utc>>,
    pub(crate) skipped: Vec<TickReport>,
    pub(crate) others: usize,
    pub(crate) clock_offset: Option<TimeDelta>,
    pub(crate) nodes: Vec<NodeReport>,
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
///         run.outcome().unwrap_or("it goes on, or nobody has said how it ended"),
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

impl JobStatus {
    /// Returns whether a majority has answered all that was asked; otherwise a part may be missing.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Returns the newest tick that was claimed, as far as the nodes know that have answered; if a majority knows it,
    /// no tick up to it can be claimed any more.
    pub fn watermark(&self) -> Option<DateTime<Utc>> {
        self.watermark
    }

    /// Returns the last runs, the newest first: up to ten of ticks, ten of each further attempt, and ten that somebody
    /// asked for.
    ///
    /// Ticks that were claimed and not started, because the job was paused for instance, are among them.
    pub fn runs(&self) -> &[PastRun] {
        &self.runs
    }

    /// Returns the newest of them.
    pub fn last_run(&self) -> Option<&PastRun> {
        self.runs.first()
    }

    /// Returns the newest that returned `Ok`.
    pub fn last_success(&self) -> Option<&PastRun> {
        self.runs.iter().find(|run| run.outcome() == Some("ok"))
    }

    /// Returns the run that goes on: one whose end nobody has recorded, and whose lock is held, or may be.
    ///
    /// Of runs that [overlap](crate::Overlap::Allow), the newest that goes on.
    pub fn running(&self) -> Option<&PastRun> {
        self.running.as_ref()
    }

    /// Returns after how long at most a majority lets the job's lock go if it is not renewed; zero if nobody has it,
    /// and `None` if that is not known.
    pub fn free_in(&self) -> Option<Duration> {
        self.free_in
    }

    /// Returns whether the job is paused; `None` if too few nodes have said so.
    pub fn is_paused(&self) -> Option<bool> {
        self.paused
    }

    /// Returns the next tick, by this replica's clock and its zone data.
    pub fn next_tick(&self) -> Option<DateTime<Utc>> {
        self.next_tick
    }

    /// Returns the last ticks that were skipped, too early, too late, missed or without a majority on this replica, and
    /// why; the newest first, up to twenty.
    pub fn skipped(&self) -> &[TickReport] {
        &self.skipped
    }

    /// Returns how many replicas with another schedule or other policies this one has seen since the job was added.
    ///
    /// After a deployment that changes the job, it counts those that ran it before.
    pub fn disagreeing(&self) -> usize {
        self.others
    }

    /// Returns by how much this replica's clock is ahead of the nodes', and negative if it is behind; `None` if no
    /// majority of theirs agree.
    pub fn clock_offset(&self) -> Option<TimeDelta> {
        self.clock_offset
    }

    /// Returns what each node had to do with the answer.
    pub fn nodes(&self) -> &[NodeReport] {
        &self.nodes
    }
}

impl PastRun {
    /// Returns the tick, or the moment at which somebody asked for it.
    pub fn tick(&self) -> DateTime<Utc> {
        to_instant(self.record.tick)
    }

    /// Returns which run of the tick it was: 1 is the first.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns whether somebody had asked for it.
    pub fn is_manual(&self) -> bool {
        self.is_manual
    }

    /// Returns on which replica it was.
    pub fn replica(&self) -> &str {
        self.record.replica.as_str()
    }

    /// Returns its fencing token.
    pub fn fencing_token(&self) -> FencingToken {
        self.record.token
    }

    /// Returns when it was claimed, by its replica's clock.
    pub fn claimed_at(&self) -> DateTime<Utc> {
        Tick::from_millis(self.record.claimed_at).map_or(DateTime::<Utc>::MAX_UTC, to_instant)
    }

    /// Returns how it ended, as [`Outcome::as_str`](crate::Outcome::as_str) says it, or `dropped` or `unstarted`;
    /// `None` if nobody has said so yet.
    pub fn outcome(&self) -> Option<&str> {
        match &self.record.state {
            RunState::Ended { outcome, .. } => Some(outcome.as_str()),
            _ => None,
        }
    }

    /// Returns whether nobody has recorded how it ended.
    pub(crate) fn is_open(&self) -> bool {
        self.outcome().is_none()
    }

    /// Returns how long it took, if it has ended.
    pub fn took(&self) -> Option<Duration> {
        match &self.record.state {
            RunState::Ended { took, .. } => Some(*took),
            _ => None,
        }
    }
}
