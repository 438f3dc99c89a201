//! The requests of a person or a tool about a job that a scheduler has.

use std::sync::Arc;

use redlock_core::Forgotten;
use tokio::sync::oneshot;

use super::singleton_scheduler::SingletonScheduler;
use crate::{
    Action, ControlError, JobStatus, Schedule, TickReport, control::OperatorCommand,
    tick::JobRunner,
};

impl SingletonScheduler {
    /// Keeps all replicas from starting the job, until it is [resumed](Self::resume).
    ///
    /// Replicas claim the ticks that come meanwhile and record them as `paused`, so that no replica makes up for them.
    /// A run that goes on is not affected, and [`trigger_now`](Self::trigger_now) still works.
    ///
    /// A majority of the nodes remembers the pause, and a node that loses its data forgets it.
    /// Pause the job again after such a loss, because otherwise the pause may be unknown while another node is down.
    ///
    /// # Errors
    ///
    /// - [`UnknownJob`](crate::ControlErrorKind::UnknownJob): this scheduler has no such job.
    /// - [`Unconfirmed`](crate::ControlErrorKind::Unconfirmed): no majority of the nodes has confirmed it.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the job may be paused or not.
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
    /// jobs.pause("close-day").await?;
    /// assert_eq!(jobs.status("close-day").await?.is_paused(), Some(true));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pause(&self, name: &str) -> Result<(), ControlError> {
        self.pause_with(name, &Action::default()).await
    }

    /// Lets all replicas start the job again, from the next tick on.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the job may be resumed or not.
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
    /// jobs.pause("close-day").await?;
    /// jobs.resume("close-day").await?;
    /// assert_eq!(jobs.status("close-day").await?.is_paused(), Some(false));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn resume(&self, name: &str) -> Result<(), ControlError> {
        let runner = self.runner(name)?;
        runner
            .command(OperatorCommand::Resume, &Action::default())
            .await
    }

    /// Keeps all replicas from starting the job as [`pause`](Self::pause) does, with the operator's name, a reason, and the
    /// time at which the pause ends by itself.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause); or the end is over, by the nodes' clocks.
    ///
    /// # Cancel safety
    ///
    /// As of [`pause`](Self::pause).
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{Action, BoxError, SingletonJob, SingletonScheduler};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let jobs = SingletonScheduler::standalone(redlock).namespace("billing").replica("pod-7").build()?;
    /// # jobs.add(SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", |_| async { Ok::<(), BoxError>(()) })).await?;
    /// jobs.pause_with("close-day", &Action::by("alice").reason("the ledger moves")).await?;
    /// println!("{}", jobs.status("close-day").await?.pause().ok_or("it is paused")?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pause_with(&self, name: &str, action: &Action) -> Result<(), ControlError> {
        self.runner(name)?
            .command(OperatorCommand::Pause, action)
            .await
    }

    /// Runs the job now on this replica, and returns the report when the run has ended.
    ///
    /// The run holds the job's lock, and the job's [overlap policy](crate::Overlap) applies to it.
    /// It uses up no tick, and is not started again if it is cut short.
    ///
    /// # Errors
    ///
    /// This scheduler has no such job.
    ///
    /// # Cancel safety
    ///
    /// After the first poll, the run goes on if the future is dropped.
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
    /// let report = jobs.trigger_now("close-day").await?;
    /// assert_eq!(report.outcome(), Outcome::Ok);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn trigger_now(&self, name: &str) -> Result<TickReport, ControlError> {
        let runner = self.runner(name)?;
        let (sender, report) = oneshot::channel();
        self.replica.tasks.spawn(async move {
            let report = runner.trigger().await;
            // The caller may have dropped its future.
            let _ = sender.send(report);
        });
        report.await.map_err(|_| {
            ControlError::unconfirmed(name, "the runtime was shut down in the run".into())
        })
    }

    /// Deletes what the nodes remember of a job that was [removed](Self::remove), here and on all other replicas.
    ///
    /// [`dangerous_forget`](crate::dangerous_forget), which needs no scheduler, explains how long to wait before.
    ///
    /// # Errors
    ///
    /// As for that function, and [`InUse`](crate::ControlErrorKind::InUse) if this scheduler still has the job.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, any of the nodes may have forgotten the job.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use redlock_cron::{BoxError, SingletonJob, SingletonScheduler};
    /// use std::time::Duration;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let jobs = SingletonScheduler::standalone(redlock).namespace("billing").build()?;
    /// jobs.add(SingletonJob::every("sweep", Duration::from_secs(300), |_| async { Ok::<(), BoxError>(()) })).await?;
    /// jobs.start().await?;
    ///
    /// assert!(jobs.remove("sweep", Duration::from_secs(30)).await?.is_clean());
    /// // On all replicas, and when the last tick can no longer be started:
    /// assert!(jobs.dangerous_forget("sweep").await?.is_whole());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn dangerous_forget(&self, name: &str) -> Result<Forgotten, ControlError> {
        if self.jobs.get(name).is_some() {
            let why = "this scheduler has it; remove it first, here and on all other replicas";
            return Err(ControlError::in_use(name, why));
        }
        let claims = &self.replica.claims;
        crate::dangerous_forget(&claims.redlock, self.replica.namespace.name(), name).await
    }

    /// Returns the names of the jobs that were added, in order.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
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
    /// assert_eq!(jobs.jobs().await, ["close-day"]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn jobs(&self) -> Vec<String> {
        self.jobs.names()
    }

    /// Returns the namespace of all its jobs.
    pub fn namespace(&self) -> &str {
        self.replica.namespace.name()
    }

    /// Returns the schedule of the job: its next ticks, and its pattern in words.
    ///
    /// # Errors
    ///
    /// This scheduler has no such job.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use redlock_cron::{BoxError, SingletonJob, SingletonScheduler, chrono::Utc, tokio_cron_scheduler::JobScheduler};
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let jobs = SingletonScheduler::builder(redlock, JobScheduler::new().await?).namespace("billing").build()?;
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "Europe/Berlin", |_| async { Ok::<(), BoxError>(()) });
    /// jobs.add(job).await?;
    ///
    /// let schedule = jobs.schedule("close-day")?;
    /// println!("{schedule}");
    /// for tick in schedule.ticks_after(Utc::now()).take(5) {
    ///     println!("{tick}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn schedule(&self, name: &str) -> Result<Schedule, ControlError> {
        Ok(self.runner(name)?.job.schedule.clone())
    }

    /// Returns what the nodes remember of the job, and what this replica has seen of it; printed, the status is a page
    /// for an operator.
    ///
    /// # Errors
    ///
    /// This scheduler has no such job.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
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
    /// println!("{status}"); // a page for an operator
    /// let last = status.last_run().ok_or("it has run")?;
    /// assert_eq!((last.replica(), last.outcome()), ("pod-7", Some("ok")));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn status(&self, name: &str) -> Result<JobStatus, ControlError> {
        Ok(self.runner(name)?.status().await)
    }

    pub(super) fn runner(&self, name: &str) -> Result<Arc<JobRunner>, ControlError> {
        let runner = self.jobs.get(name);
        runner.ok_or_else(|| ControlError::unknown(name))
    }
}
