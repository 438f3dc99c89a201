use std::sync::Arc;

use chrono::{DateTime, Utc};

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
