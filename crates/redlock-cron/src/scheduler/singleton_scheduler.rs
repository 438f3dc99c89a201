use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::Mutex;

use super::LastHandle;
#[cfg(feature = "tokio-cron-scheduler")]
use super::attached::Attached;
use crate::{
    ControlError, SetupError, ShutdownReport, SingletonJob,
    replica::Replica,
    scheduler::pulse::{Jobs, Waker, watch},
    tick::JobRunner,
};

/// Runs cron jobs so that each tick is started on one replica.
///
/// The [crate documentation](crate) has the promises and their assumptions.
///
/// # Dropping
///
/// A clone is another handle of the same scheduler.
/// The drop of the last handle starts nothing more and drops the runs in flight without a wait;
/// [`shutdown`](Self::shutdown) waits for them.
/// A job that holds a clone keeps the scheduler alive until a shutdown.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_cron::{BoxError, SingletonJob, SingletonScheduler};
/// use std::time::Duration;
///
/// let jobs = SingletonScheduler::standalone(redlock).namespace("billing").build()?;
/// let sweep = |_| async { Ok::<(), BoxError>(()) };
/// jobs.add(SingletonJob::every("sweep", Duration::from_secs(300), sweep)).await?;
/// jobs.start().await?;
///
/// // When the process is asked to end:
/// let report = jobs.shutdown(Duration::from_secs(30)).await;
/// assert!(report.is_clean());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "dropping the scheduler ends its jobs"]
pub struct SingletonScheduler {
    /// The application's scheduler that wakes jobs up, if one was given.
    #[cfg(feature = "tokio-cron-scheduler")]
    pub(super) attached: Option<Arc<Attached>>,
    pub(super) replica: Arc<Replica>,
    pub(super) jobs: Arc<Jobs>,
    /// Locked while it is started or a job is added.
    pub(super) is_started: Arc<Mutex<bool>>,
    /// If a replica with another configuration has run a job within this time, [`add`](Self::add) refuses the job.
    agreed_within: Option<Duration>,
    _last: Arc<LastHandle>,
}

impl SingletonScheduler {
    pub(crate) fn new(replica: Arc<Replica>, agreed_within: Option<Duration>) -> Self {
        let jobs = Arc::new(Jobs::new(Arc::clone(&replica)));
        let last = LastHandle {
            replica: Arc::clone(&replica),
            #[cfg(feature = "metrics")]
            jobs: Arc::clone(&jobs),
        };
        Self {
            #[cfg(feature = "tokio-cron-scheduler")]
            attached: None,
            jobs,
            is_started: Arc::default(),
            replica,
            agreed_within,
            _last: Arc::new(last),
        }
    }

    /// Lets this scheduler of the application's wake jobs up.
    #[cfg(feature = "tokio-cron-scheduler")]
    pub(crate) fn attached_to(mut self, scheduler: tokio_cron_scheduler::JobScheduler) -> Self {
        self.attached = Some(Arc::new(Attached::new(scheduler)));
        self
    }

    /// Adds a job, before or after the start.
    ///
    /// Its first tick is the first after now, unless the job makes up for [missed](SingletonJob::missed) ticks.
    /// A job whose schedule has ended, because its pattern names a year that has passed, is added too: the log says so,
    /// the job has no ticks, and its status and `trigger_now` work.
    ///
    /// # Errors
    ///
    /// The job is not valid, can never be due, or has a name that is taken; the scheduler was shut down; or replicas
    /// [disagree](crate::SingletonSchedulerBuilder::refuse_disagreement) on the job.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it returns, the job is not added.
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
    /// use redlock_cron::SetupErrorKind;
    ///
    /// let sweep = |pattern| SingletonJob::cron("sweep", pattern, "UTC", |_| async { Ok::<(), BoxError>(()) });
    /// let error = jobs.add(sweep("0 0 25 * * *")).await.unwrap_err();
    /// assert_eq!((error.job(), error.field()), (Some("sweep"), "pattern"));
    /// jobs.add(sweep("0 0 * * * *")).await?;
    /// let taken = jobs.add(sweep("0 0 * * * *")).await.unwrap_err();
    /// assert_eq!(taken.kind(), SetupErrorKind::Duplicate);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn add(&self, job: SingletonJob) -> Result<(), SetupError> {
        let name = job.name.clone();
        let added = self.try_add(job, false).await;
        added.map_err(|error| error.of_job(&name))
    }

    /// Puts a job in the place of the one that has its name here, or adds the job if there is none.
    ///
    /// After this returns, the scheduler starts nothing more of the old job.
    /// Runs of the old job that are in flight go on to their end, and the [overlap policy](SingletonJob::overlap) of the new job
    /// applies to them.
    /// The new job gets the ticks of its schedule for which this replica has not asked the nodes yet; the old job
    /// reports its own ticks as [`Removed`](crate::Outcome::Removed).
    /// A tick that this replica is claiming at that moment may be lost, as in a shutdown, unless it is delivered [at
    /// least once](crate::Delivery::AtLeastOnce).
    ///
    /// The change affects this replica only: make it on all replicas, which warn of each other until then.
    /// [`refuse_disagreement`](crate::SingletonSchedulerBuilder::refuse_disagreement) does not refuse a job that takes
    /// the place of another.
    /// The nodes keep their memory of the job, including a pause, and no replica makes up for past ticks of the new
    /// schedule.
    ///
    /// # Errors
    ///
    /// The job is not valid or can never be due, and the old job goes on as it was; the scheduler was shut down; or
    /// this scheduler has no job of that name, and replicas
    /// [disagree](crate::SingletonSchedulerBuilder::refuse_disagreement) on the job.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it returns, the old job goes on as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use redlock_cron::{BoxError, SingletonJob, SingletonScheduler};
    ///
    /// let job = |pattern| SingletonJob::cron("close-day", pattern, "Europe/Berlin", |_| async { Ok::<(), BoxError>(()) });
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let jobs = SingletonScheduler::standalone(redlock).namespace("billing").build()?;
    /// jobs.add(job("0 0 2 * * *")).await?;
    /// jobs.start().await?;
    ///
    /// // The configuration has changed.
    /// jobs.replace(job("0 30 3 * * *")).await?;
    /// assert_eq!(jobs.schedule("close-day")?.to_string(), "At 03:30, in the zone Europe/Berlin");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn replace(&self, job: SingletonJob) -> Result<(), SetupError> {
        let name = job.name.clone();
        let added = self.try_add(job, true).await;
        added.map_err(|error| error.of_job(&name))
    }

    async fn try_add(&self, job: SingletonJob, replaces: bool) -> Result<(), SetupError> {
        let is_started = self.is_started.lock().await;
        self.check_open()?;
        let name = job.name.clone();
        // Ticks count from now on, by the nodes' clocks.
        self.replica.look_at_clocks().await;
        let runner = JobRunner::new(&self.replica, job)?;
        let is_new = self.jobs.get(&name).is_none();
        if !is_new && !replaces {
            return Err(SetupError::duplicate());
        }
        if let Some(within) = self.agreed_within
            && is_new
        {
            runner.job.check_agreement(within).await?;
        }
        runner.log_if_it_ended();
        runner.job.log_doubts();
        #[cfg(feature = "metrics")]
        self.replica.observer.measure(|meter| meter.register(&name));
        let runner = self.jobs.insert(name, runner);
        #[cfg(feature = "metrics")]
        {
            runner.measure_next();
            runner.measure_not_overdue();
        }
        if *is_started {
            self.begin(&runner);
        }
        Ok(())
    }

    /// Starts to wake jobs up.
    ///
    /// # Errors
    ///
    /// The scheduler was started or shut down before.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the scheduler may have been started or not.
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
    /// jobs.start().await?;
    /// assert!(jobs.start().await.is_err(), "once is enough");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start(&self) -> Result<(), SetupError> {
        let mut is_started = self.is_started.lock().await;
        self.check_open()?;
        let waker = self.waker(*is_started).await?;
        *is_started = true;
        for runner in self.jobs.all() {
            self.begin(&runner);
        }
        let (replica, jobs) = (Arc::clone(&self.replica), Arc::downgrade(&self.jobs));
        self.replica.tasks.spawn(watch(waker, replica, jobs));
        Ok(())
    }

    /// Returns what wakes jobs up: an alarm on the application's scheduler, or a timer if there is none.
    async fn waker(&self, is_started: bool) -> Result<Waker, SetupError> {
        #[cfg(feature = "tokio-cron-scheduler")]
        if let Some(attached) = &self.attached {
            let alarm = attached.set_alarm(&self.jobs, is_started).await?;
            return Ok(Waker::Alarm(alarm));
        }
        if is_started {
            return Err(SetupError::started_before());
        }
        Ok(Waker::Timer)
    }

    /// Wakes the job up, because the first alarm may be too late for its first tick, and looks for missed ticks.
    fn begin(&self, runner: &Arc<JobRunner>) {
        runner.wake();
        self.replica.tasks.spawn(Arc::clone(runner).begin());
    }

    /// Starts nothing more of the job on this replica, waits for its runs in flight up to `grace`, drops those that are
    /// left, and forgets the job.
    ///
    /// After the first poll, the scheduler starts nothing more of the job, not even ticks that it is claiming.
    /// With a `grace` of [`Duration::MAX`], its runs end by themselves.
    /// With another `grace`, the method returns some seconds after the grace at the latest, and reports the runs that
    /// did not finish.
    /// The runs' leases are released before it returns, and the name is free for another job at once.
    /// If a run of the job awaits this method, both wait for each other until the grace is over: a run should spawn the
    /// call, and not await it.
    /// If this overlaps with a [`shutdown`](Self::shutdown), the grace that is over first counts, and both report the
    /// runs that did not finish.
    ///
    /// Other replicas go on with the job until it is removed from them, too.
    /// They start again what was cut short here if the job is delivered [at least once](crate::Delivery::AtLeastOnce).
    /// The nodes remember the job's last runs and its newest tick for good, so that a later job of that name continues
    /// after them; [`dangerous_forget`](Self::dangerous_forget) deletes these records.
    ///
    /// # Errors
    ///
    /// This scheduler has no such job.
    ///
    /// # Cancel safety
    ///
    /// After the first poll, the scheduler starts nothing more of the job.
    /// If the future is dropped, runs in flight go on until they end or the scheduler is dropped.
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
    /// let report = jobs.remove("sweep", Duration::from_secs(30)).await?;
    /// assert!(report.is_clean());
    /// assert!(jobs.jobs().await.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(
        &self,
        name: &str,
        grace: Duration,
    ) -> Result<ShutdownReport, ControlError> {
        let runner = self.jobs.remove(name);
        let runner = runner.ok_or_else(|| ControlError::unknown(name))?;
        #[cfg(feature = "metrics")]
        {
            runner.measure_next();
            // What is removed here is judged by other replicas.
            runner.measure_not_overdue();
        }
        Ok(self.replica.tasks.end(&runner.job.ending, grace).await)
    }

    fn check_open(&self) -> Result<(), SetupError> {
        if self.replica.tasks.is_draining() {
            Err(SetupError::closed())
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for SingletonScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingletonScheduler")
            .field("namespace", &self.replica.namespace)
            .finish_non_exhaustive()
    }
}
