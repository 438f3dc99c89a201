//! The policies that say how a run goes on, and beside which others.

use std::time::Duration;

use crate::{OnLost, Overlap, SingletonJob, Tries};

impl SingletonJob {
    /// Sets the time to live of the lease that a run holds, from 100 ms to the client's `max_ttl`.
    ///
    /// Default: the client's [`ttl`](redlock_core::Redlock::ttl).
    /// It bounds how long a replica that crashes in a run keeps other replicas from running the job.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::SingletonJob;
    /// use std::time::Duration;
    ///
    /// // A replica that crashes in a run costs the next tick nothing.
    /// let job = SingletonJob::every("sweep", Duration::from_secs(5), close_books)
    ///     .ttl(Duration::from_secs(3));
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = Some(ttl);
        self
    }

    /// Sets the policy for a tick that comes during a run of the job, on any replica.
    ///
    /// Default: [`Overlap::Skip`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::{Overlap, SingletonJob};
    /// use std::time::Duration;
    ///
    /// // A tick waits up to ten minutes for the run of the one before.
    /// let job = SingletonJob::every("import", Duration::from_secs(900), close_books)
    ///     .overlap(Overlap::Wait)
    ///     .start_within(Duration::from_secs(600));
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn overlap(mut self, policy: Overlap) -> Self {
        self.settings.overlap = policy;
        self
    }

    /// Sets the policy for a run whose lease is lost.
    ///
    /// Default: [`OnLost::Abort`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::{OnLost, SingletonJob};
    ///
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", |run| async move {
    ///     for _page in 0..3 {
    ///         if run.is_stopping() {
    ///             return Err("it ended between two pages".into());
    ///         }
    ///         // Writes a page, which must not be dropped half-way.
    ///     }
    ///     Ok::<(), BoxError>(())
    /// })
    /// .on_lost(OnLost::Signal);
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_lost(mut self, policy: OnLost) -> Self {
        self.settings.on_lost = policy;
        self
    }

    /// Sets the longest time that a run may take: not zero.
    ///
    /// Default: no limit.
    /// A run that takes longer is told to stop, dropped a second later, and reported as
    /// [`TimedOut`](crate::Outcome::TimedOut).
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::SingletonJob;
    /// use std::time::Duration;
    ///
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", close_books)
    ///     .max_runtime(Duration::from_secs(15 * 60));
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_runtime(mut self, limit: Duration) -> Self {
        self.settings.max_runtime = Some(limit);
        self
    }

    /// Sets how often a run calls the job again if it returned an error.
    ///
    /// Default: once, and a run that returned an error is reported as [`Failed`](crate::Outcome::Failed) at once.
    ///
    /// All tries belong to one run, of one tick, under one lease and one fencing token.
    /// No other run of the job begins in the pauses.
    /// The [overlap](Self::overlap) policy applies to ticks that come meanwhile, and [`max_runtime`](Self::max_runtime)
    /// limits all tries together.
    /// A run ends in a pause if it is told to [stop](crate::Run::stopping), and at the beginning of a shutdown or of
    /// the removal of its job.
    /// The run has then failed, or was cut short if [`delivery`](Self::delivery) lets another replica continue its
    /// work.
    /// A call that panics is not repeated.
    /// [`delivery`](Self::delivery) covers a run that a crash, a lost lease, a shutdown or a removal cuts short.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::{SingletonJob, Tries};
    /// use std::time::Duration;
    ///
    /// // Four calls at most, after pauses of up to 5, 10 and 20 seconds.
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", close_books)
    ///     .tries(Tries::up_to(4).backoff(Duration::from_secs(5), Duration::from_secs(60)));
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn tries(mut self, tries: Tries) -> Self {
        self.settings.tries = Some(tries);
        self
    }
}
