use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};
use redlock_core::NodeReport;

use crate::PastRun;

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
/// for run in job.runs() {
///     println!("{} on {}: {:?}", run.tick(), run.replica(), run.outcome());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JobMemory {
    pub(crate) is_known: bool,
    pub(crate) watermark: Option<DateTime<Utc>>,
    pub(crate) free_in: Option<Duration>,
    pub(crate) paused: Option<bool>,
    pub(crate) running: Option<PastRun>,
    pub(crate) runs: Vec<PastRun>,
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

    /// Returns the newest tick that was claimed; `None` also for a job that never ran.
    pub fn watermark(&self) -> Option<DateTime<Utc>> {
        self.watermark
    }

    /// Returns the longest time until a majority lets the job's lock go if it is not renewed; zero if the lock is free,
    /// and `None` if that is not known.
    ///
    /// Runs that may overlap ([`Overlap::Allow`](crate::Overlap::Allow), [`Overlap::UpTo`](crate::Overlap::UpTo)) do not
    /// hold it.
    pub fn free_in(&self) -> Option<Duration> {
        self.free_in
    }

    /// Returns whether the job is paused; `None` if too few nodes have said so.
    pub fn is_paused(&self) -> Option<bool> {
        self.paused
    }

    /// Returns the run that goes on, as [`JobStatus::running`](crate::JobStatus::running).
    pub fn running(&self) -> Option<&PastRun> {
        self.running.as_ref()
    }

    /// Returns the last runs, the newest first, as [`JobStatus::runs`](crate::JobStatus::runs).
    pub fn runs(&self) -> &[PastRun] {
        &self.runs
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
        let is_locked = self.free_in.is_none_or(|left| !left.is_zero());
        is_locked.then_some(InUse::Locked)
    }

    /// Returns whether a majority remembers the same runs as in `before`.
    pub(crate) fn has_the_runs_of(&self, before: &Self) -> bool {
        let runs = |memory: &Self| {
            let runs = memory.runs.iter().map(|run| &run.record);
            runs.map(|run| (run.tick, run.token)).collect::<Vec<_>>()
        };
        self.watermark == before.watermark && runs(self) == runs(before)
    }

    /// Returns what each node contributed to the answer.
    pub fn nodes(&self) -> &[NodeReport] {
        &self.nodes
    }
}
