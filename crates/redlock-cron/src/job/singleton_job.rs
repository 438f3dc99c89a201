use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};
use tower_service::Service;

use super::{
    settings::Settings,
    work::{Condition, Work, boxed, calls},
};
use crate::{
    BoxError, Delivery, Missed, OnLost, Overlap, Run, Schedule, SetupError, Tries, Zone,
    schedule::Plan,
};

/// A cron job of which each tick is started on one replica.
///
/// It is the same job on all replicas that add it under the same name to schedulers of the same
/// namespace; they must give it the same pattern and zone.
/// What is wrong with it is told by [`SingletonScheduler::add`](crate::SingletonScheduler::add).
///
/// # Examples
///
/// ```
/// use redlock_cron::{Run, SingletonJob};
/// use std::time::Duration;
///
/// let job = SingletonJob::cron("close-day", "0 0 2 * * *", chrono_tz::Europe::Berlin, |run: Run| async move {
///     println!("closing the books of {}", run.tick());
///     Ok::<(), std::io::Error>(())
/// })
/// .start_within(Duration::from_secs(10));
/// ```
#[must_use = "a job does nothing until it is added to a scheduler"]
pub struct SingletonJob {
    pub(crate) name: String,
    pub(crate) plan: Plan,
    pub(crate) settings: Settings,
    pub(crate) work: Work,
    pub(crate) condition: Option<Condition>,
}

impl SingletonJob {
    /// Makes a job that is due whenever `pattern` matches the local time of `zone`.
    ///
    /// * `name` has 1 to 128 bytes, is unique in its scheduler and the same on all replicas.
    /// * `pattern` has the fields second, minute, hour, day of month, month, day of week and, if
    ///   wanted, year; a day must match both day fields.
    /// * `zone` is an IANA zone or the name of one.
    ///   Where clocks go forward, a fixed time that does not exist is due at the first instant after
    ///   the gap; where they go back, a fixed time that exists twice is due at the first.
    ///   A pattern that repeats within the hour goes on through both passes and skips the gap.
    ///   A pattern with several hours counts as repeating.
    /// * `work` is called for each run; its future is dropped if the run's lease is lost.
    ///   It must not block its thread.
    pub fn cron<F, W, E>(
        name: impl Into<String>,
        pattern: impl Into<String>,
        zone: impl Into<Zone>,
        work: W,
    ) -> Self
    where
        W: Fn(Run) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let (pattern, zone) = (pattern.into(), zone.into());
        Self::new(name.into(), Plan::Cron { pattern, zone }, boxed(work))
    }

    /// Makes a job that is due at every multiple of `interval` since the Unix epoch, whenever it was added.
    ///
    /// * `name` and `work` are as for [`cron`](Self::cron).
    /// * `interval` is whole seconds, up to 365 days.
    pub fn every<F, W, E>(name: impl Into<String>, interval: Duration, work: W) -> Self
    where
        W: Fn(Run) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self::new(name.into(), Plan::Every(interval), boxed(work))
    }

    /// Makes a job that is due once, at `instant`.
    ///
    /// * `name` and `work` are as for [`cron`](Self::cron).
    /// * `instant` is the same on all replicas, so take it from the configuration or a database, not from the clock.
    ///   A fraction of a second is dropped.
    ///
    /// Its policy for [missed](Self::missed) ticks is [`Missed::Latest`] by default: no later tick would tell of one
    /// that no replica was up for, so it is started when one comes up within
    /// [`catch_up_window`](Self::catch_up_window), a day by default, also if the nodes know nothing of the job.
    /// The nodes remember that it was started, so a replica that is deployed after it does not start it again.
    /// Under a name that was used before, an instant is started only if it is later than the newest tick of that name.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::{BoxError, SingletonJob};
    ///
    /// let at = "2026-12-24T18:00:00Z".parse().unwrap();
    /// let job = SingletonJob::once("send-greetings-2026", at, |_| async { Ok::<(), BoxError>(()) });
    /// ```
    pub fn once<F, W, E>(name: impl Into<String>, instant: DateTime<Utc>, work: W) -> Self
    where
        W: Fn(Run) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let job = Self::new(name.into(), Plan::Once(instant), boxed(work));
        job.missed(Missed::Latest)
    }

    /// Makes a job as [`cron`](Self::cron), whose runs are calls of a [`tower`](tower_service) service.
    ///
    /// So layers for time limits, retries or tracing can be put around it; the run goes on, and its lease is held,
    /// until the call's future ends.
    /// Each run gets a clone; what the service answers is dropped.
    pub fn cron_service<S>(
        name: impl Into<String>,
        pattern: impl Into<String>,
        zone: impl Into<Zone>,
        service: S,
    ) -> Self
    where
        S: Service<Run> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
    {
        let (pattern, zone) = (pattern.into(), zone.into());
        Self::new(name.into(), Plan::Cron { pattern, zone }, calls(service))
    }

    /// Makes a job as [`every`](Self::every), whose runs are calls of a service; see
    /// [`cron_service`](Self::cron_service).
    pub fn every_service<S>(name: impl Into<String>, interval: Duration, service: S) -> Self
    where
        S: Service<Run> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
    {
        Self::new(name.into(), Plan::Every(interval), calls(service))
    }

    /// Returns when the job is due, before any scheduler has it.
    ///
    /// # Errors
    ///
    /// The pattern, the zone or the interval is not valid.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::{BoxError, SingletonJob};
    ///
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", |_| async { Ok::<(), BoxError>(()) });
    /// let from = "2026-11-21T12:00:00Z".parse().unwrap();
    /// let next: Vec<_> = job.schedule()?.ticks_after(from).take(2).map(|tick| tick.to_string()).collect();
    /// assert_eq!(next, ["2026-11-22 02:00:00 UTC", "2026-11-23 02:00:00 UTC"]);
    /// # Ok::<(), redlock_cron::SetupError>(())
    /// ```
    pub fn schedule(&self) -> Result<Schedule, SetupError> {
        self.plan.schedule()
    }

    fn new(name: String, plan: Plan, work: Work) -> Self {
        Self {
            name,
            plan,
            settings: Settings::default(),
            work,
            condition: None,
        }
    }

    /// Sets how long after a tick, by the nodes' clocks, it may still be started: a second to 365 days.
    ///
    /// Default: half of the shortest time between two ticks, but at least 5 s and at most a minute.
    pub fn start_within(mut self, limit: Duration) -> Self {
        self.settings.start_within = Some(limit);
        self
    }

    /// Sets by how much the nodes' clocks may be before a tick when it is started: from 10 ms to half of
    /// the client's [`max_ttl`](redlock_core::Redlock::max_ttl), and a minute at most.
    ///
    /// Default: 2 s, or half of `max_ttl` if that is less.
    /// A replica whose clock is ahead starts ticks so much too early at most; what it must allow for is how far the
    /// clocks of the nodes are from each other.
    /// It should be the same on all replicas: by how much they differ in it, so much less may the nodes' clocks be set
    /// back.
    pub fn early(mut self, limit: Duration) -> Self {
        self.settings.early = Some(limit);
        self
    }

    /// Sets the time to live of the lease that a run holds, from 100 ms to the client's `max_ttl`.
    ///
    /// Default: the client's [`ttl`](redlock_core::Redlock::ttl).
    /// It bounds how long a replica that crashes in a run keeps the job from being run by others.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = Some(ttl);
        self
    }

    /// Sets what becomes of a tick that comes while a run goes on, on whichever replica.
    ///
    /// Default: [`Overlap::Skip`].
    pub fn overlap(mut self, policy: Overlap) -> Self {
        self.settings.overlap = policy;
        self
    }

    /// Sets what becomes of ticks that nobody started when they were due.
    ///
    /// Default: [`Missed::Skip`], and [`Missed::Latest`] for a job that is due [once](Self::once).
    pub fn missed(mut self, policy: Missed) -> Self {
        self.settings.missed = policy;
        self
    }

    /// Sets how old a missed tick may be when it is started: from `start_within` to 365 days.
    ///
    /// Default: a day.
    /// It says nothing without a policy for [missed](Self::missed) ticks.
    pub fn catch_up_window(mut self, window: Duration) -> Self {
        self.settings.catch_up_window = Some(window);
        self
    }

    /// Sets whether a tick is started again if its run did not end by itself.
    ///
    /// Default: [`Delivery::AtMostOnce`].
    pub fn delivery(mut self, policy: Delivery) -> Self {
        self.settings.delivery = policy;
        self
    }

    /// Sets how long after a tick, by the nodes' clocks, it may be started again if its run did not end by itself: from
    /// `start_within` to 365 days.
    ///
    /// Default: long enough for all attempts, if [`max_runtime`](Self::max_runtime) says how long a run takes: the
    /// time in which the tick may be started first, and for each further attempt `max_runtime` and `ttl`.
    /// Without a `max_runtime`: a day, and no less than `catch_up_window`.
    /// It says nothing without [`Delivery::AtLeastOnce`].
    pub fn retry_within(mut self, limit: Duration) -> Self {
        self.settings.retry_within = Some(limit);
        self
    }

    /// Sets what becomes of a run whose lease is lost.
    ///
    /// Default: [`OnLost::Abort`].
    pub fn on_lost(mut self, policy: OnLost) -> Self {
        self.settings.on_lost = policy;
        self
    }

    /// Sets the longest that a run may take: not zero.
    ///
    /// Default: without end.
    /// A run that takes longer is told to stop, dropped a second later, and reported as
    /// [`TimedOut`](crate::Outcome::TimedOut).
    pub fn max_runtime(mut self, limit: Duration) -> Self {
        self.settings.max_runtime = Some(limit);
        self
    }

    /// Sets a condition under which this replica asks for a tick: `condition` is called with each tick before it is
    /// claimed here, and the claim is left to other replicas if it returns false.
    ///
    /// Default: it asks for every tick.
    /// So a replica that is not ready, or whose part of the data is elsewhere, starts nothing and uses no tick up; it
    /// reports [`Declined`](crate::Outcome::Declined).
    /// A run that somebody [asked for](crate::SingletonScheduler::trigger_now) is not subject to it; a further
    /// [attempt](Self::delivery) is, and until it is too late for that, no later tick of the job is claimed.
    ///
    /// A tick that all replicas decline was [missed](Self::missed).
    /// With a policy that makes up for missed ticks, the condition is asked about the newest tick again, every five
    /// seconds until the next one is due or `catch_up_window` is over, and only then the tick is reported as declined.
    /// So a tick that comes while the caches of all replicas are cold is started by the first that is ready.
    /// Older ticks that all have declined are made up for when a replica comes up or the job is
    /// [replaced](crate::SingletonScheduler::replace), if no later tick was claimed meanwhile.
    ///
    /// Between its answer and the claim, a tick may wait for a [place](crate::SingletonSchedulerBuilder::max_runs), for
    /// the nodes, or for a run with [`Overlap::Wait`], so what it said may be as old as that.
    /// It may be called several times for a tick that is claimed again, and must not block.
    /// If it panics, that is logged, and the tick is declined.
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

    /// Sets how often a run calls the job again if it returned an error.
    ///
    /// Default: it does not, and the run is reported as [`Failed`](crate::Outcome::Failed) at once.
    ///
    /// All tries are one run, of one tick, under one lease and one fencing token: no other run of the job begins in the
    /// pauses, ticks that come meanwhile meet it as the [overlap](Self::overlap) policy says, and
    /// [`max_runtime`](Self::max_runtime) holds for all of them together.
    /// The run ends in a pause if it is told to [stop](Run::stopping), and at the beginning of a shutdown or of the
    /// removal of its job: it has failed then, or was cut short if [`delivery`](Self::delivery) lets another replica go on
    /// with it.
    /// A call that panics is not repeated.
    /// What a crash, a lost lease, a shutdown or a removal cuts short is for [`delivery`](Self::delivery).
    pub fn tries(mut self, tries: Tries) -> Self {
        self.settings.tries = Some(tries);
        self
    }

    /// Sets how long after a tick, by the nodes' clocks, replicas ask for it at the latest: up to a quarter of
    /// `start_within`.
    ///
    /// Default: half a second, or a quarter of `start_within` if that is less.
    /// Each waits for a random part of it, a replica that has won one of the last ticks longer than the others, so that
    /// all have about as many runs, whatever their clocks show.
    /// A replica that is alone waits for half of it at most.
    /// With [`Duration::ZERO`], all ask at the tick, and the quickest has it: for jobs that must start as soon as they
    /// can.
    /// Ticks that were missed and runs that are started again are not spread.
    pub fn spread(mut self, longest: Duration) -> Self {
        self.settings.spread = Some(longest);
        self
    }
}

impl fmt::Debug for SingletonJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingletonJob")
            .field("name", &self.name)
            .field("plan", &self.plan)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
