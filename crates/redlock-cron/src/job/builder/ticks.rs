//! The policies that say which ticks are started, when, and how often.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{Delivery, Missed, SingletonJob};

impl SingletonJob {
    /// Sets how late after a tick a replica may still start it, by the nodes' clocks: a second to 365 days.
    ///
    /// Default: half of the shortest time between two ticks, but at least 5 s and at most a minute.
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
    /// // Also if the nodes cannot be reached for some minutes at two.
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", close_books)
    ///     .start_within(Duration::from_secs(15 * 60));
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn start_within(mut self, limit: Duration) -> Self {
        self.settings.start_within = Some(limit);
        self
    }

    /// Sets how far before a tick the nodes' clocks may be when it is started: from 10 ms to half of the client's
    /// [`max_ttl`](redlock_core::Redlock::max_ttl), and a minute at most.
    ///
    /// Default: 2 s, or half of `max_ttl` if that is less.
    /// A replica whose clock is ahead starts ticks too early by this time at most.
    /// The setting must allow for the differences between the clocks of the nodes.
    /// Set it to the same value on all replicas: the nodes' clocks may be set back by less if replicas differ, by the
    /// difference.
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
    /// // The clocks of the nodes are kept within 100 ms of each other.
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", close_books)
    ///     .early(Duration::from_millis(100));
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn early(mut self, limit: Duration) -> Self {
        self.settings.early = Some(limit);
        self
    }

    /// Sets the policy for ticks that no replica started when they were due.
    ///
    /// Default: [`Missed::Skip`], and [`Missed::Latest`] for a job that is due [once](Self::once).
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::{Missed, SingletonJob};
    ///
    /// // After a night without a replica, one run makes up for all of its ticks.
    /// let job = SingletonJob::cron("rebuild-index", "0 0 * * * *", "UTC", close_books)
    ///     .missed(Missed::Latest);
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn missed(mut self, policy: Missed) -> Self {
        self.settings.missed = policy;
        self
    }

    /// Sets how old a missed tick may be when it is started: from `start_within` to 365 days.
    ///
    /// Default: a day, and no less than `start_within`.
    /// `add` refuses it without a policy for [missed](Self::missed) ticks.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::{Missed, SingletonJob};
    /// use std::time::Duration;
    ///
    /// // Each day has its run, also after a week without a replica.
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", close_books)
    ///     .missed(Missed::All { max: 31 })
    ///     .catch_up_window(Duration::from_secs(31 * 86_400));
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn catch_up_window(mut self, window: Duration) -> Self {
        self.settings.catch_up_window = Some(window);
        self
    }

    /// Sets the policy for a tick whose run did not end by itself.
    ///
    /// Default: [`Delivery::AtMostOnce`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::{Delivery, SingletonJob};
    /// use std::time::Duration;
    ///
    /// // A run that was cut short by a crash is started again, on another replica.
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", close_books)
    ///     .delivery(Delivery::AtLeastOnce { max_attempts: 3 })
    ///     .max_runtime(Duration::from_secs(600));
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn delivery(mut self, policy: Delivery) -> Self {
        self.settings.delivery = policy;
        self
    }

    /// Sets how late after a tick a replica may start it again, by the nodes' clocks, if its run did not end by itself:
    /// from `start_within` to 365 days.
    ///
    /// Default with a [`max_runtime`](Self::max_runtime): long enough for all attempts.
    /// That is the time in which the tick may be started first, and `max_runtime` and `ttl` for each further attempt.
    /// Default without a `max_runtime`: a day, and no less than `catch_up_window`.
    /// `add` refuses it without [`Delivery::AtLeastOnce`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::{Delivery, SingletonJob};
    /// use std::time::Duration;
    ///
    /// // The books may be closed until the office opens.
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", close_books)
    ///     .delivery(Delivery::AtLeastOnce { max_attempts: 3 })
    ///     .retry_within(Duration::from_secs(6 * 3_600));
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry_within(mut self, limit: Duration) -> Self {
        self.settings.retry_within = Some(limit);
        self
    }

    /// Sets a condition under which this replica asks for a tick.
    /// The scheduler calls `condition` with each tick before this replica claims it; if it returns false, this replica
    /// leaves the claim to other replicas.
    ///
    /// Default: this replica asks for every tick.
    /// A replica that is not ready, or that does not have the data, starts nothing and uses up no tick; it reports
    /// [`Declined`](crate::Outcome::Declined).
    /// The condition does not apply to a run on [request](crate::SingletonScheduler::trigger_now).
    /// It applies to a further [attempt](Self::delivery); no replica claims a later tick of the job until the attempt
    /// is made or is too late.
    ///
    /// A tick that all replicas decline counts as [missed](Self::missed).
    /// With a policy that makes up for missed ticks, the scheduler calls the condition with the newest tick again every
    /// five seconds, until the next tick is due or `catch_up_window` is over; only then it reports the tick as
    /// declined.
    /// So if a tick comes while the caches of all replicas are cold, the first replica that is ready starts it.
    /// A replica makes up for older ticks that all replicas have declined when it comes up or the job is
    /// [replaced](crate::SingletonScheduler::replace), if no later tick was claimed meanwhile.
    ///
    /// After the call, a tick may wait for a [place](crate::SingletonSchedulerBuilder::max_runs), for the nodes, or for
    /// a run with [`Overlap::Wait`](crate::Overlap::Wait); the result of the condition may be as old as that wait.
    /// The condition may be called several times for a tick that is claimed again, and must not block.
    /// If it panics, the log has the panic, and the tick is declined.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::{BoxError, SingletonJob};
    /// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    ///
    /// let cache_is_warm = Arc::new(AtomicBool::new(false));
    /// let ready = Arc::clone(&cache_is_warm);
    /// let job = SingletonJob::cron("report", "0 0 6 * * *", "UTC", |_| async { Ok::<(), BoxError>(()) })
    ///     .only_if(move |_tick| ready.load(Ordering::Relaxed));
    /// ```
    pub fn only_if(
        mut self,
        condition: impl Fn(DateTime<Utc>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.condition = Some(Box::new(condition));
        self
    }

    /// Sets the time after a tick, by the nodes' clocks, within which all replicas ask for it: up to a quarter of
    /// `start_within`.
    ///
    /// Default: half a second, or a quarter of `start_within` if that is less.
    /// Each replica waits for a random part of this time, and a replica that has won one of the last ticks waits longer
    /// than the others.
    /// So all replicas have about the same number of runs, whatever their clocks show.
    /// A replica that is alone waits for half of this time at most.
    /// With [`Duration::ZERO`], all replicas ask at the tick, and the fastest one wins: use it for jobs that must start
    /// as soon as possible.
    /// Missed ticks and runs that are started again are not spread.
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
    /// // Starts at the tick, on the replica that asks first.
    /// let job = SingletonJob::cron("open-auction", "0 0 9 * * *", "UTC", close_books)
    ///     .spread(Duration::ZERO);
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn spread(mut self, longest: Duration) -> Self {
        self.settings.spread = Some(longest);
        self
    }
}
