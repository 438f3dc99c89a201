use std::{fmt, sync::Arc, time::Duration};

use redlock_core::Redlock;
#[cfg(feature = "tokio-cron-scheduler")]
use tokio_cron_scheduler::JobScheduler;

use super::singleton_scheduler::SingletonScheduler;
use crate::{
    Run, SetupError, TickReport,
    clock::{SystemClock, WallClock},
    record::{OutcomeHook, Reporter, StartHook},
    replica::Replica,
};

/// Describes a scheduler; [`SingletonScheduler::builder`] and [`SingletonScheduler::standalone`] make it.
///
/// The namespace has no default.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_cron::SingletonScheduler;
///
/// let jobs = SingletonScheduler::standalone(redlock)
///     .namespace("billing")
///     .replica("pod-7")
///     .on_start(|run| println!("{} of {} begins", run.name(), run.tick()))
///     .on_outcome(|report| println!("{} of {}: {}", report.job(), report.tick(), report.outcome()))
///     .build()?;
/// # drop(jobs);
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct SingletonSchedulerBuilder {
    redlock: Redlock,
    /// The scheduler of the application that wakes jobs up; `None` is a timer.
    #[cfg(feature = "tokio-cron-scheduler")]
    scheduler: Option<JobScheduler>,
    namespace: String,
    replica: Option<String>,
    hook: Option<OutcomeHook>,
    start: Option<StartHook>,
    agreed_within: Option<Duration>,
    max_runs: Option<usize>,
    clock: Option<Arc<dyn WallClock>>,
}

impl SingletonScheduler {
    /// Begins the description of a scheduler that claims ticks through `redlock` and is woken up by `scheduler`; with the
    /// feature `tokio-cron-scheduler`, which is on by default.
    ///
    /// The scheduler adds one job to `scheduler`, which is due every second, however many jobs it has.
    /// Do not give `scheduler` a store that replicas share, because they would take each other's wake-ups.
    /// The application may add other jobs to it; [`shutdown`](Self::shutdown) ends them too.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_cron::{
    ///     SingletonScheduler,
    ///     tokio_cron_scheduler::{Job, JobScheduler},
    /// };
    ///
    /// // Jobs of both kinds: this one runs on every replica.
    /// let scheduler = JobScheduler::new().await?;
    /// scheduler.add(Job::new("0 * * * * *", |_, _| println!("a minute has passed"))?).await?;
    /// let jobs = SingletonScheduler::builder(redlock, scheduler).namespace("billing").build()?;
    /// # drop(jobs);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tokio-cron-scheduler")]
    pub fn builder(redlock: Redlock, scheduler: JobScheduler) -> SingletonSchedulerBuilder {
        SingletonSchedulerBuilder {
            scheduler: Some(scheduler),
            ..SingletonSchedulerBuilder::new(redlock)
        }
    }

    /// Begins the description of a scheduler that claims ticks through `redlock` and wakes jobs up by a timer of its own.
    ///
    /// [`start`](Self::start) begins it, and [`shutdown`](Self::shutdown) or a drop of the scheduler ends it.
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
    /// assert!(jobs.shutdown(Duration::from_secs(30)).await.is_clean());
    /// # Ok(())
    /// # }
    /// ```
    pub fn standalone(redlock: Redlock) -> SingletonSchedulerBuilder {
        SingletonSchedulerBuilder::new(redlock)
    }
}

impl SingletonSchedulerBuilder {
    fn new(redlock: Redlock) -> Self {
        Self {
            redlock,
            #[cfg(feature = "tokio-cron-scheduler")]
            scheduler: None,
            namespace: String::new(),
            replica: None,
            hook: None,
            start: None,
            agreed_within: None,
            max_runs: None,
            clock: None,
        }
    }

    /// Sets the namespace of the jobs' names: 1 to 64 bytes, without control characters and slashes.
    ///
    /// Use the name of the service: the same on all of its replicas, and on no other service that uses the same nodes.
    /// Two services with a job `cleanup` in one namespace would take each other's ticks.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the name of this replica in the nodes' records of its runs: 1 to 64 bytes, without spaces and control
    /// characters.
    ///
    /// Default: the value of `HOSTNAME`, and the number of the process.
    /// It is for operators; no decision depends on it.
    pub fn replica(mut self, name: impl Into<String>) -> Self {
        self.replica = Some(name.into());
        self
    }

    /// Calls `hook` with each run that begins on this replica, right before its job.
    ///
    /// The scheduler calls it once for a run, whatever the run's [tries](crate::SingletonJob::tries), on the run's
    /// task, in its span and under its lease, so it must not block.
    /// Use [`on_outcome`](Self::on_outcome) for the end of a run, and [`only_if`](crate::SingletonJob::only_if) to keep
    /// a run from its start.
    /// A panic in `hook` is logged and has no other effect.
    pub fn on_start(mut self, hook: impl Fn(&Run) + Send + Sync + 'static) -> Self {
        self.start = Some(Box::new(hook));
        self
    }

    /// Calls `hook` with the report of each tick.
    ///
    /// The task that dealt with the tick calls it, between the end of the run and the release of its lease, so it must
    /// not block.
    /// A panic in `hook` is logged and has no other effect.
    pub fn on_outcome(mut self, hook: impl Fn(&TickReport) + Send + Sync + 'static) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// Refuses to add a job that was run under another schedule or other policies within this time, as far as the nodes
    /// remember its last runs; off by default.
    ///
    /// A service then notices at its start that another service uses its namespace, or that its configuration differs
    /// from that of its other replicas.
    /// Without this setting, replicas that disagree warn, and [`JobStatus::disagreeing`](crate::JobStatus::disagreeing)
    /// counts them.
    /// With it, a deployment that changes a job must first stop all replicas for this time, so leave it off if replicas
    /// are replaced one by one.
    /// If too few nodes answer, the job is added with a warning.
    pub fn refuse_disagreement(mut self, within: Duration) -> Self {
        self.agreed_within = Some(within);
        self
    }

    /// Sets how many runs may go on at the same time on this replica, of all jobs of this scheduler: from 1 to 1,000,000.
    ///
    /// Default: no limit.
    /// A tick that is due while all places are taken waits for a free place before its claim, so another replica may
    /// start it meanwhile.
    /// If no replica has started it when it is too late, it is reported as [`NoPlace`](crate::Outcome::NoPlace).
    /// Waiting ticks get places in the order in which they asked for one, which may differ from the order in which they
    /// were due: each tick asks after a random time of up to half a second, and a tick that is tried again asks again.
    /// With [`Overlap::Skip`](crate::Overlap::Skip), a tick that waits for the place of a run of its own job is started
    /// after that run, if it is not too late, and is not skipped.
    /// A run on [request](SingletonScheduler::trigger_now) waits for a place as well.
    /// Whatever this limit is, a replica claims at most 256 ticks at the same time, beside those that wait for the end of a
    /// run; the others wait for their turn, and end as [`TooLate`](crate::Outcome::TooLate) or as
    /// [`NoPlace`](crate::Outcome::NoPlace) if it does not come in time.
    /// With [`Overlap::Wait`](crate::Overlap::Wait), a tick has a place while it waits for a run on another replica.
    pub fn max_runs(mut self, most: usize) -> Self {
        self.max_runs = Some(most);
        self
    }

    /// Sets the clock of a test, which the scheduler uses instead of the machine's clock; with the feature `test-util`.
    ///
    /// A client in [virtual time](redlock_core::RedlockBuilder::virtual_time) and such a clock need each other;
    /// [`build`](Self::build) refuses one without the other.
    /// tokio-cron-scheduler knows only the machine's clock, so it does not wake this scheduler up: one that was
    /// [given](SingletonScheduler::builder) is neither started nor shut down.
    #[cfg(feature = "test-util")]
    pub fn clock(mut self, clock: &crate::JobClock) -> Self {
        self.clock = Some(Arc::new(clock.clone()));
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::SetupErrorKind::Misuse): the namespace is missing or not valid, the replica's name is not
    /// valid, `max_runs` is out of its range, the client is in virtual time and the scheduler has no clock for it, or
    /// the scheduler has such a clock and the client is not in virtual time.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_cron::{SetupErrorKind, SingletonScheduler};
    ///
    /// let error = SingletonScheduler::standalone(redlock).namespace("a/b").build().unwrap_err();
    /// assert_eq!((error.kind(), error.field()), (SetupErrorKind::Misuse, "namespace"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn build(self) -> Result<SingletonScheduler, SetupError> {
        let is_virtual = self.redlock.is_in_virtual_time();
        let clock: Arc<dyn WallClock> = match (self.clock, is_virtual) {
            (None, false) => Arc::new(SystemClock),
            (Some(clock), true) => clock,
            (None, true) => {
                let message = "is missing: the client is in virtual time, and the scheduler would go by the machine's \
                     clock; give it a `JobClock`, of the feature `test-util`";
                return Err(SetupError::misuse("clock", message));
            }
            (Some(_), false) => {
                let message = "is for tests: the client goes by the machine's clock, and so must the scheduler; call \
                     `virtual_time()` on the client's builder, or leave the clock out";
                return Err(SetupError::misuse("clock", message));
            }
        };
        let mut observer = Reporter::new(self.hook);
        observer.start = self.start;
        let replica = Replica::new(
            self.redlock,
            &self.namespace,
            self.replica,
            observer,
            clock,
            self.max_runs,
        )?;
        let agreed_within = self.agreed_within;
        let scheduler = SingletonScheduler::new(replica, agreed_within);
        #[cfg(feature = "tokio-cron-scheduler")]
        let scheduler = match self.scheduler {
            // It has no clock but the machine's, and does not wake jobs up by that of a test.
            Some(given) if !is_virtual => scheduler.attached_to(given),
            _ => scheduler,
        };
        #[cfg(feature = "test-util")]
        scheduler.register_at_clock();
        Ok(scheduler)
    }
}

impl fmt::Debug for SingletonSchedulerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingletonSchedulerBuilder")
            .field("redlock", &self.redlock)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
