use std::{
    collections::{HashSet, VecDeque},
    fmt,
    ops::Deref,
};

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use redlock_core::{Printable, Rounded, RunRecord};

use crate::{JobMemory, Outcome, TickReport, clock::written, job::Fingerprint};

/// The status of a job: the nodes' memory of it, and what this replica has seen of it.
///
/// It dereferences to the [memory](JobMemory) of the nodes.
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
/// println!("next at {:?}, others disagree: {}", status.next_tick(), status.disagreeing());
/// println!("skipped here: {:?}, clock ahead by {:?}", status.skipped(), status.clock_offset());
/// assert!(status.is_known(), "too few nodes have answered: {:?}", status.nodes());
/// let last = status.last_success().ok_or("alert: it never succeeded")?;
/// # assert_eq!(status.last_run().map(|run| run.tick()), Some(last.tick()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JobStatus {
    pub(crate) memory: JobMemory,
    pub(crate) next_tick: Option<DateTime<Utc>>,
    pub(crate) skipped: Vec<TickReport>,
    pub(crate) others: usize,
    pub(crate) clock_offset: Option<TimeDelta>,
}

impl JobStatus {
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
}

impl Deref for JobStatus {
    type Target = JobMemory;

    fn deref(&self) -> &JobMemory {
        &self.memory
    }
}

/// Some lines, of which the first says how things stand now; without a line break at the end.
///
/// The words are for people and may change.
impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_paused = self.is_paused() == Some(true);
        let is_lock_known = self.memory.record.is_some();
        let is_locked = self.free_in().is_some_and(|left| !left.is_zero());
        match self.running() {
            Some(run) => write!(f, "running on {}", Printable::new(run.replica()))?,
            None if is_paused => f.write_str("paused")?,
            None if is_locked => f.write_str("locked, though no run is known")?,
            None if is_lock_known => f.write_str("idle")?,
            None => f.write_str("unknown: too few nodes answered")?,
        }
        if !self.is_known() && is_lock_known {
            f.write_str(", and a part is missing")?;
        }
        if let Some(left) = self.free_in().filter(|left| !left.is_zero()) {
            write!(f, ", its lease ends in {} unless renewed", Rounded(left))?;
        }
        if is_paused && self.running().is_some() {
            f.write_str(", and paused from its end on")?;
        }
        if let Some(next) = self.next_tick() {
            write!(f, "\n  next tick     {}", written(next))?;
        } else {
            f.write_str("\n  next tick     none: the schedule has ended")?;
        }
        match self.last_run() {
            Some(run) => write!(f, "\n  last run      {run}")?,
            None if self.is_known() => f.write_str("\n  last run      none is remembered")?,
            None => {}
        }
        if let Some(run) = self.last_success() {
            write!(f, "\n  last success  {run}")?;
        }
        for skipped in self.skipped() {
            write!(f, "\n  skipped here  {}", written(skipped.tick()))?;
            if skipped.ticks() > 1 {
                let last = written(skipped.last_tick());
                write!(f, " to {last}, {} ticks", skipped.ticks())?;
            }
            write!(f, ": {}", skipped.outcome())?;
            if let Some(why) = skipped.detail() {
                write!(f, ", {}", Printable::new(&why.replace('\n', "; ")))?;
            }
        }
        if self.disagreeing() > 0 {
            let others = self.disagreeing();
            write!(
                f,
                "\n  configured otherwise on {others} replica(s) that ran it"
            )?;
        }
        if let Some(offset) = self.clock_offset() {
            let ms = offset.num_milliseconds();
            write!(f, "\n  this clock    {ms:+} ms from the nodes'")?;
        }
        let mut nodes = self.nodes().iter();
        nodes.try_for_each(|node| write!(f, "\n  node {node}"))
    }
}

/// The journal of this replica about a job: its observations since the job was added.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<JournalState>);

#[derive(Debug, Default)]
struct JournalState {
    /// Other configurations of the job, each with the replica that has it.
    others: HashSet<(u64, String)>,
    /// The last ticks that were not started though no other replica had them, the newest first.
    skipped: VecDeque<TickReport>,
}

impl Journal {
    /// Notes the replica and the configuration of a run if the configuration is another; returns whether they are new.
    pub(crate) fn differs(&self, run: &RunRecord, fingerprint: Fingerprint) -> bool {
        if fingerprint.is_same(run.fingerprint) {
            return false;
        }
        let mut seen = self.0.lock();
        let other = (run.fingerprint, run.replica.as_str().to_owned());
        seen.others.len() < MOST_OTHERS && seen.others.insert(other)
    }

    /// Returns how many replicas with other configurations were seen.
    pub(crate) fn others(&self) -> usize {
        self.0.lock().others.len()
    }

    /// Remembers a tick that was skipped.
    pub(crate) fn note(&self, report: &TickReport) {
        let outcome = report.outcome();
        let ended = matches!(outcome, Outcome::Draining | Outcome::Removed);
        if ended || outcome.was_started() || outcome == Outcome::NotWinner {
            return;
        }
        let mut seen = self.0.lock();
        seen.skipped.push_front(report.clone());
        seen.skipped.truncate(MOST_SKIPPED);
    }

    pub(crate) fn skipped(&self) -> Vec<TickReport> {
        self.0.lock().skipped.iter().cloned().collect()
    }
}

/// A fleet that is deployed every hour should not fill the memory.
const MOST_OTHERS: usize = 1_000;
const MOST_SKIPPED: usize = 20;
