use std::{cmp::Reverse, fmt, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{JobRecord, JobState, NodeReport, RunRecord, Series};

use super::{
    JobPause, JobRegistration, PastRun,
    backfill::{BackfillEntry, MOST_BACKFILLED, is_cancelled, moment_of_tick},
    expectation::ended_at,
};
use crate::clock::{to_instant, written};

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
    pub(crate) record: Option<JobRecord>,
    /// Whether runs may overlap, so that the job's lock says nothing of them.
    pub(crate) have_own_locks: bool,
    /// The pause that goes on.
    pub(crate) pause: Option<JobPause>,
    /// The run that goes on.
    pub(crate) running: Option<PastRun>,
    /// The newest first.
    pub(crate) runs: Vec<PastRun>,
    pub(crate) backfill: Option<Backfill>,
    pub(crate) registration: Option<JobRegistration>,
    /// The nodes' time at the reading.
    pub(crate) now: DateTime<Utc>,
    pub(crate) nodes: Vec<NodeReport>,
}

/// The backfill of a job that was begun last: how many ticks it has, and the runs of them.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
/// if let Some(backfill) = job.backfill() {
///     println!("{} has counted {} ticks at {}", backfill.replica(), backfill.ticks(), backfill.moment());
///     for run in backfill.runs() {
///         println!("{} on {}: {:?}", run.tick(), run.replica(), run.outcome());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Backfill {
    plan: RunRecord,
    is_cancelled: bool,
    ticks: u64,
    runs: Vec<PastRun>,
}

/// Ticks of a job that no replica has claimed, one after the other: before a claim that the nodes remember, or after the
/// newest.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
/// for ticks in job.unclaimed().await {
///     println!("{} ticks from {} to {}: {}", ticks.ticks(), ticks.first(), ticks.last(), ticks.why_not_started());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnclaimedTicks {
    first: DateTime<Utc>,
    last: DateTime<Utc>,
    ticks: u64,
    has_run_beside: bool,
}

impl UnclaimedTicks {
    /// Returns the first of these ticks.
    pub fn first(&self) -> DateTime<Utc> {
        self.first
    }

    /// Returns the last of these ticks.
    pub fn last(&self) -> DateTime<Utc> {
        self.last
    }

    /// Returns how many they are, up to a million.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Returns why they were not started, in words for people.
    pub fn why_not_started(&self) -> &'static str {
        match self.has_run_beside {
            true => "another run went on",
            false => "no replica claimed it",
        }
    }
}

/// One line: the ticks, and why they were not started.
impl fmt::Display for UnclaimedTicks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, last] = [self.first, self.last].map(written);
        match self.ticks {
            1 => write!(f, "tick {first}: ")?,
            ticks => write!(f, "{ticks} ticks from {first} to {last}: ")?,
        }
        write!(f, "not started, {}", self.why_not_started())
    }
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

    /// Returns whether the nodes that have answered remember anything of the job, be it only a pause that has ended.
    pub fn is_remembered(&self) -> bool {
        let mut lines = (self.record.iter()).flat_map(|record| record.runs(|_| true));
        lines.next().is_some() || self.watermark().is_some()
    }

    /// Returns the newest tick that was claimed, as far as the answering nodes know; `None` also for a job that never
    /// ran.
    ///
    /// If a majority knows it, no replica can claim a tick up to it any more.
    pub fn watermark(&self) -> Option<DateTime<Utc>> {
        let ticks = self.record.as_ref()?.of(Series::TICKS);
        ticks.watermark.map(to_instant)
    }

    /// Returns the last runs, the newest first: up to 101 of ticks, with the further runs of these, 101 on request of all
    /// replicas and of one, and 101 of backfills.
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
    pub fn requested(&self, moment: DateTime<Utc>) -> Option<&PastRun> {
        let mut runs = self.runs.iter().filter(|run| run.is_manual());
        runs.find(|run| !run.is_backfill() && run.tick() == moment)
    }

    /// Returns the [backfill](crate::request_backfill) that a replica has begun last; `None` if there was none.
    pub fn backfill(&self) -> Option<&Backfill> {
        self.backfill.as_ref()
    }

    /// Returns what a scheduler has registered of the job, also before its first tick; `None` also if too few nodes have said
    /// so.
    pub fn registration(&self) -> Option<&JobRegistration> {
        self.registration.as_ref()
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
        let ticks = self.record.as_ref()?.of(Series::TICKS);
        ticks.free_in.filter(|_| !self.have_own_locks)
    }

    /// Returns whether the job is paused; `None` if too few nodes have said so.
    pub fn is_paused(&self) -> Option<bool> {
        self.record.as_ref().map(|_| self.pause.is_some())
    }

    /// Returns the pause of the job that goes on; `None` also if too few nodes have said so.
    pub fn pause(&self) -> Option<&JobPause> {
        self.pause.as_ref()
    }

    /// Returns the ticks of the [registered](Self::registration) schedule that no replica has claimed, the newest first, as far
    /// back as the nodes remember claims of that schedule.
    ///
    /// The last ten seconds do not count, because a replica may still claim their ticks.
    /// Nothing is returned if no scheduler has registered the schedule, or if the nodes have no room for all of it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect; it asks no node.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
    /// assert!(job.unclaimed().await.is_empty(), "no scheduler has it");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn unclaimed(&self) -> Vec<UnclaimedTicks> {
        let registration = self.registration.as_ref();
        let Some((registration, schedule)) = registration.and_then(|it| Some((it, it.schedule()?)))
        else {
            return Vec::new();
        };
        let is_due = |run: &&PastRun| run.record.series == Series::TICKS;
        let mut due: Vec<_> = self.runs.iter().filter(is_due).collect();
        due.sort_by_key(|run| Reverse(run.record.tick));
        let of_schedule = due
            .iter()
            .take_while(|run| registration.is_of_schedule(&run.record));
        let Some(since) = of_schedule.last().map(|run| run.tick()) else {
            return Vec::new();
        };
        let claimed = self.runs.iter();
        let claimed = claimed.filter(|run| run.is_backfill() || !run.is_manual());
        let claimed = claimed.map(PastRun::tick).filter(|tick| *tick >= since);
        let mut bounds: Vec<_> = claimed.collect();
        bounds.sort();
        let present = self.now - STILL_CLAIMED;
        if !registration.is_gone() && bounds.last() < Some(&present) {
            bounds.push(present);
        }
        let mut all = Vec::new();
        for pair in bounds.windows(2).rev() {
            let &[after, before] = pair else { continue };
            let ticks = schedule.count(after, before, MOST_COUNTED).await;
            let (first, last) = (schedule.next_after(after), schedule.latest_before(before));
            if let Some((first, last)) = first.zip(last)
                && ticks > 0
            {
                all.push(UnclaimedTicks {
                    first,
                    last,
                    ticks,
                    has_run_beside: self.runs.iter().any(|run| self.goes_on(run, first, last)),
                });
            }
        }
        all
    }

    /// Returns whether the run went on from `first` to `last`, by the clock of its replica.
    fn goes_on(&self, run: &PastRun, first: DateTime<Utc>, last: DateTime<Utc>) -> bool {
        let is_running = (self.running.as_ref()).is_some_and(|it| it.record == run.record);
        let began = run.claimed_at().max(run.tick());
        let has_begun = run.why_not_started().is_none() && began <= first;
        has_begun && (is_running || !run.is_open() && ended_at(run) >= last)
    }

    /// Returns why the job must not be [forgotten](crate::dangerous_forget) now; `None` if nothing is known against it.
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

impl Backfill {
    /// Reads the newest backfill; `None` if there was none.
    pub(crate) fn newest(plans: &JobState, runs: &[PastRun]) -> Option<Self> {
        let plan = plans.runs.iter().find(|plan| !is_cancelled(plan))?.clone();
        let is_cancelled = plans.runs.first().is_some_and(is_cancelled);
        let Some(BackfillEntry::Plan(ticks)) = BackfillEntry::of(&plan) else {
            return None;
        };
        let moment = to_instant(plan.tick);
        let its_own = moment..=moment_of_tick(moment, MOST_BACKFILLED);
        let mut runs: Vec<_> = runs
            .iter()
            .filter(|run| run.is_backfill() && its_own.contains(&to_instant(run.record.tick)))
            .cloned()
            .collect();
        runs.sort_by_key(|run| run.record.tick);
        Some(Self {
            plan,
            is_cancelled,
            ticks,
            runs,
        })
    }

    /// Returns the moment at which it was requested, by the nodes' clocks.
    pub fn moment(&self) -> DateTime<Utc> {
        to_instant(self.plan.tick)
    }

    /// Returns whether an operator has [ended](crate::cancel_backfill) it.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    /// Returns the replica that counted its ticks.
    pub fn replica(&self) -> &str {
        self.plan.replica.as_str()
    }

    /// Returns the number of ticks in its range, up to 100 000.
    ///
    /// If it is more than [`MOST_BACKFILLED`], no replica starts any of them.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Returns the runs that were claimed, in the order of their ticks.
    ///
    /// A tick that had ended well before has the outcome `already-ok`; it was not started again.
    pub fn runs(&self) -> &[PastRun] {
        &self.runs
    }
}

/// For how long a replica may still claim a tick as one that is due.
const STILL_CLAIMED: TimeDelta = TimeDelta::seconds(10);

/// The most ticks that are counted between two claims.
const MOST_COUNTED: u64 = 1_000_000;
