use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{FencingToken, NodeReport, RunRecord, RunState, Tick};

use crate::{TickReport, clock::to_instant};

/// The status of a job: the nodes' memory of it, and what this replica has seen of it.
///
/// The part from the nodes is the answer of a majority.
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

impl JobStatus {
    /// Returns whether a majority has answered all questions; otherwise a part may be missing.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Returns the newest tick that was claimed, as far as the answering nodes know; if a majority knows it, no replica
    /// can claim a tick up to it any more.
    pub fn watermark(&self) -> Option<DateTime<Utc>> {
        self.watermark
    }

    /// Returns the last runs, the newest first: up to ten of ticks, ten of each further run of a tick, and ten on request.
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

    /// Returns the run that goes on: its end is not recorded, and its lock is held, or may be held.
    ///
    /// If runs may [overlap](crate::Overlap::Allow), it is the newest run that goes on.
    pub fn running(&self) -> Option<&PastRun> {
        self.running.as_ref()
    }

    /// Returns the longest time until a majority lets the job's lock go if it is not renewed; zero if no replica holds
    /// it, and `None` if that is not known.
    pub fn free_in(&self) -> Option<Duration> {
        self.free_in
    }

    /// Returns whether the job is paused; `None` if too few nodes have answered.
    pub fn is_paused(&self) -> Option<bool> {
        self.paused
    }

    /// Returns the next tick, by the nodes' clocks as far as they are known, and by this replica's zone data.
    pub fn next_tick(&self) -> Option<DateTime<Utc>> {
        self.next_tick
    }

    /// Returns the last ticks that were skipped, too early, too late, missed, given up or without a majority on this replica,
    /// with the reasons; the newest first, up to twenty.
    pub fn skipped(&self) -> &[TickReport] {
        &self.skipped
    }

    /// Returns how many replicas with another schedule or other policies this replica has seen since the job was added.
    ///
    /// After a deployment that changes the job, it counts the replicas that ran the job before.
    pub fn disagreeing(&self) -> usize {
        self.others
    }

    /// Returns by how much this replica's clock is ahead of the nodes' clocks, negative if it is behind; `None` if no
    /// majority of the nodes' clocks agrees.
    pub fn clock_offset(&self) -> Option<TimeDelta> {
        self.clock_offset
    }

    /// Returns what each node contributed to the answer.
    pub fn nodes(&self) -> &[NodeReport] {
        &self.nodes
    }
}

impl PastRun {
    /// Returns the tick, or the moment of the request for the run.
    pub fn tick(&self) -> DateTime<Utc> {
        to_instant(self.record.tick)
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
