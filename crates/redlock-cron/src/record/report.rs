use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{Outcome, Trigger};

/// The report of a tick on this replica.
///
/// Every replica has one report for each tick that it was awake for; if all replicas are healthy, one of these reports
/// is about a run.
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
/// use redlock_cron::Outcome;
///
/// let report = jobs.trigger_now("close-day").await?; // or by `on_outcome`
/// println!(
///     "{} of {} ({:?}, attempt {}, tries {}): {} {}",
///     report.job(),
///     report.tick(),
///     report.trigger(),
///     report.attempt(),
///     report.tries(),
///     report.outcome(),
///     report.detail().unwrap_or_default(),
/// );
/// println!(
///     "{:?} after the tick; claimed in {:?}; ran for {:?}; clock ahead by {:?}",
///     report.lag(),
///     report.claim_took(),
///     report.took(),
///     report.clock_offset(),
/// );
/// if report.outcome() == Outcome::Missed {
///     println!("{} ticks, up to {}", report.ticks(), report.last_tick());
/// }
/// # assert!(report.outcome().was_started());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TickReport {
    pub(crate) job: Arc<str>,
    pub(crate) tick: DateTime<Utc>,
    /// The last tick it is about and how many there are, if it is about more than one.
    pub(crate) more: Option<(DateTime<Utc>, u64)>,
    pub(crate) trigger: Trigger,
    pub(crate) attempt: u32,
    pub(crate) tries: u32,
    pub(crate) outcome: Outcome,
    pub(crate) lag: Duration,
    pub(crate) took: Option<Duration>,
    pub(crate) measured: Option<Measured>,
    pub(crate) detail: Option<String>,
}

/// The measurements of a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// The duration of the claim.
    pub(crate) took: Duration,
    /// By how much this replica's clock was ahead of the nodes'.
    pub(crate) ahead: Option<TimeDelta>,
}

impl TickReport {
    /// Returns the job's name.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Returns the scheduled instant, in whole seconds; the first, if the report is about [several](Self::ticks) ticks.
    pub fn tick(&self) -> DateTime<Utc> {
        self.tick
    }

    /// Returns the last tick of the report: [`tick`](Self::tick), unless the report is about several ticks.
    pub fn last_tick(&self) -> DateTime<Utc> {
        self.more.map_or(self.tick, |(last, _)| last)
    }

    /// Returns the number of ticks of the report: one, unless very many were [missed](Outcome::Missed), or a backfill left
    /// several.
    ///
    /// The count ends at a million.
    pub fn ticks(&self) -> u64 {
        self.more.map_or(1, |(_, ticks)| ticks)
    }

    /// Returns the reason for which the tick was to be started.
    pub fn trigger(&self) -> Trigger {
        self.trigger
    }

    /// Returns the number of the run among the runs of its tick: 1 is the first.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the number of calls of the job in the run: 1, unless the run failed and was [tried
    /// again](crate::SingletonJob::tries); 0 if the tick was not started here.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Returns the outcome of the tick.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns the time from the tick to the start of the run, or to the decision not to start it, on this replica's
    /// clock.
    pub fn lag(&self) -> Duration {
        self.lag
    }

    /// Returns the duration of the run, if the tick was started here.
    pub fn took(&self) -> Option<Duration> {
        self.took
    }

    /// Returns the duration of the claim that decided it, including its wait for another run; `None` if no node was
    /// asked.
    pub fn claim_took(&self) -> Option<Duration> {
        self.measured.map(|measured| measured.took)
    }

    /// Returns by how much this replica's clock was ahead of the nodes' clocks at the decision; negative if it was
    /// behind.
    ///
    /// The nodes' time is the clock in the middle of a majority that agrees, and is known to about one round trip.
    /// `None` if no node was asked, or no majority agreed.
    pub fn clock_offset(&self) -> Option<TimeDelta> {
        self.measured?.ahead
    }

    /// Returns details for an operator: the job's error, the message of the panic, the answer of each node.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

/// The report of a shutdown, or of the removal of a job: the runs that it left undone.
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
/// use std::time::Duration;
///
/// let report = jobs.shutdown(Duration::from_secs(30)).await;
/// if !report.is_clean() {
///     eprintln!("{} runs did not finish", report.unfinished().len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "it says which runs did not finish"]
pub struct ShutdownReport {
    pub(crate) unfinished: Vec<UnfinishedRun>,
}

/// A run that had not finished when the grace of the shutdown, or of its job's removal, was over.
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
/// use std::time::Duration;
///
/// for run in jobs.shutdown(Duration::from_secs(30)).await.unfinished() {
///     let end = if run.was_dropped() { "was dropped" } else { "blocks its thread and goes on" };
///     eprintln!("{} of {} {end}", run.job(), run.tick());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnfinishedRun {
    pub(crate) job: Arc<str>,
    pub(crate) tick: DateTime<Utc>,
    pub(crate) dropped: bool,
}

impl ShutdownReport {
    /// Returns whether every run in flight finished by itself.
    pub fn is_clean(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// Returns the runs that did not finish.
    pub fn unfinished(&self) -> &[UnfinishedRun] {
        &self.unfinished
    }
}

impl UnfinishedRun {
    /// Returns the job's name.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Returns the scheduled instant.
    pub fn tick(&self) -> DateTime<Utc> {
        self.tick
    }

    /// Returns whether the run was dropped, or ended when it was told to stop; if not, it blocks its thread and goes
    /// on.
    pub fn was_dropped(&self) -> bool {
        self.dropped
    }
}
