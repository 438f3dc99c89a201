//! The policies of a job: which ticks are started and when, how a run goes on, and beside which others.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};

use crate::{Delivery, Missed, OnLost, Overlap, SingletonJob, Tries};

impl SingletonJob {
    /// Sets how late after a tick a replica may still start it, by the nodes' clocks: a second to 365 days.
    ///
    /// Default: half of the shortest time between two ticks, but at least 5 s and at most a minute.
    pub fn start_within(mut self, limit: Duration) -> Self {
        self.settings.start_within = Some(limit);
        self
    }

    /// Sets the policy for ticks that no replica started when they were due.
    ///
    /// Default: [`Missed::Skip`], and [`Missed::Latest`] for a job that is due [once](Self::once).
    pub fn missed(mut self, policy: Missed) -> Self {
        self.settings.missed = policy;
        self
    }

    /// Sets how old a missed tick may be when it is started: from `start_within` to 365 days.
    ///
    /// Default: a day, and no less than `start_within`.
    /// `add` refuses it without a policy for [missed](Self::missed) ticks.
    pub fn catch_up_window(mut self, window: Duration) -> Self {
        self.settings.catch_up_window = Some(window);
        self
    }

    /// Sets the policy for a tick whose run did not end by itself.
    ///
    /// Default: [`Delivery::AtMostOnce`].
    pub fn delivery(mut self, policy: Delivery) -> Self {
        self.settings.delivery = policy;
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

    /// Sets the time to live of the lease that a run holds, from 100 ms to the client's `max_ttl`.
    ///
    /// Default: the client's [`ttl`](redlock_core::Redlock::ttl).
    /// It bounds how long a replica that crashes in a run keeps other replicas from running the job.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = Some(ttl);
        self
    }

    /// Sets the policy for a tick that comes during a run of the job, on any replica.
    ///
    /// Default: [`Overlap::Skip`].
    pub fn overlap(mut self, policy: Overlap) -> Self {
        self.settings.overlap = policy;
        self
    }

    /// Sets the policy for a run whose lease is lost.
    ///
    /// Default: [`OnLost::Abort`].
    pub fn on_lost(mut self, policy: OnLost) -> Self {
        self.settings.on_lost = policy;
        self
    }

    /// Sets the longest time that a run may take: not zero.
    ///
    /// Default: no limit.
    /// A run that takes longer is told to stop, dropped a second later, and reported as
    /// [`TimedOut`](crate::Outcome::TimedOut).
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
    pub fn tries(mut self, tries: Tries) -> Self {
        self.settings.tries = tries;
        self
    }

    /// Sets how long the job may have no successful run before its replicas report that one is overdue: from a second
    /// to 365 days.
    ///
    /// Default: no limit.
    /// Any replica that is up compares the end of the last run that returned `Ok`, which the nodes remember, with the
    /// nodes' clocks, also a replica that comes up after all were gone.
    /// It reads the memory of the job at least once a minute, so it reports a lapse within about a minute.
    /// If the nodes remember no such run, the time begins with the first look of any replica.
    /// A run on [request](crate::SingletonScheduler::trigger_now) counts, and a [pause](crate::SingletonScheduler::pause)
    /// does not stop the time.
    ///
    /// One replica logs each lapse once, as an event `overdue` at `ERROR` under `redlock::job`, and its end with the
    /// next success at `INFO`.
    /// With the feature `metrics`, each replica sets `redlock_job_overdue` to 1 for as long as a success is overdue, and
    /// to 0 otherwise.
    /// While too few nodes answer, replicas report neither.
    ///
    /// The end of a run is known by the clock of its replica: a replica whose clock is ahead delays the report by as
    /// much.
    /// The nodes remember the last success also behind more failures than they keep, if a replica was up to see both; a
    /// success that no replica saw in time delays the report, and never hastens it.
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
    /// // A day without a run that ended well, and two hours for the run itself, wake an operator.
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", close_books)
    ///     .expect_success_within(Duration::from_secs(26 * 3_600));
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn expect_success_within(mut self, limit: Duration) -> Self {
        self.settings.expect_success_within = Some(limit);
        self
    }

    /// Leaves all ticks of these days out, such as holidays: a day is one of the zone of the job's pattern, and of UTC for a
    /// job without one.
    ///
    /// Previews, backfills and the dead-man's switch know of them; missed ticks of these days are not made up for.
    /// All replicas must have the same days.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::{BoxError, SingletonJob, chrono::NaiveDate};
    ///
    /// let holidays = [NaiveDate::from_ymd_opt(2026, 12, 25), NaiveDate::from_ymd_opt(2027, 1, 1)];
    /// let job = SingletonJob::cron("remind", "0 0 9 * * MON-FRI", "Europe/Berlin", |_| async { Ok::<(), BoxError>(()) })
    ///     .except(holidays.into_iter().flatten());
    /// # drop(job);
    /// ```
    pub fn except(mut self, days: impl IntoIterator<Item = NaiveDate>) -> Self {
        self.except.extend(days);
        self
    }

    /// Lets the nodes remember the text of the error with which a run fails, for operators: its first 200 bytes.
    ///
    /// [`PastRun::note`](crate::PastRun::note) returns it, and `redlock jobs` shows it.
    /// By default the nodes remember the outcome alone, because an error may have data of customers in it.
    pub fn remember_errors(mut self) -> Self {
        self.settings.remember_errors = true;
        self
    }

    /// Sets the time after a tick, by the nodes' clocks, within which all replicas ask for it: up to a quarter of
    /// `start_within`; for tests, which say when a replica asks for a tick.
    ///
    /// Default: half a second, or a quarter of `start_within` if that is less.
    #[cfg(any(test, feature = "test-util"))]
    pub fn spread(mut self, longest: Duration) -> Self {
        self.settings.spread = Some(longest);
        self
    }
}
