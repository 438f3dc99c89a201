use std::{fmt, sync::Arc, time::Duration};

use redlock_core::Redlock;
use tokio_cron_scheduler::JobScheduler;

use super::singleton_scheduler::SingletonScheduler;
use crate::{
    Run, SetupError, TickReport,
    clock::{Clock, SystemClock},
    record::{Observer, OutcomeHook, StartHook},
    replica::Replica,
};

/// Describes a scheduler; made by [`SingletonScheduler::builder`] or
/// [`SingletonScheduler::standalone`].
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
    /// None if it makes its own.
    scheduler: Option<JobScheduler>,
    namespace: String,
    replica: Option<String>,
    hook: Option<OutcomeHook>,
    start: Option<StartHook>,
    agreed_within: Option<Duration>,
    max_runs: Option<usize>,
    clock: Option<Arc<dyn Clock>>,
}

impl SingletonScheduler {
    /// Starts to describe a scheduler that claims ticks through `redlock` and is woken up by
    /// `scheduler`.
    ///
    /// It has one job there, whatever is added, which is due every second.
    /// Do not give it a store that is shared with other replicas: they would take each other's
    /// wake-ups.
    /// It may have other jobs as well, and ends with [`shutdown`](Self::shutdown) for them too.
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
    pub fn builder(redlock: Redlock, scheduler: JobScheduler) -> SingletonSchedulerBuilder {
        SingletonSchedulerBuilder::new(redlock, Some(scheduler))
    }

    /// Starts to describe a scheduler that claims ticks through `redlock` and is woken up by a tokio-cron-scheduler of
    /// its own, for services without jobs of another kind.
    ///
    /// That is made at the [start](Self::start), and ends with [`shutdown`](Self::shutdown) or when this is dropped.
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
        SingletonSchedulerBuilder::new(redlock, None)
    }
}

impl SingletonSchedulerBuilder {
    fn new(redlock: Redlock, scheduler: Option<JobScheduler>) -> Self {
        Self {
            redlock,
            scheduler,
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
    /// It is the service's name, in most cases: the same on all of its replicas, and on nothing else
    /// that uses the same nodes.
    /// Two services with a job `cleanup` in one namespace would take each other's ticks.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_cron::SingletonScheduler;
    ///
    /// let missing = SingletonScheduler::standalone(redlock.clone()).build().unwrap_err();
    /// assert_eq!(missing.field(), "namespace");
    /// let jobs = SingletonScheduler::standalone(redlock).namespace("billing").build()?;
    /// # drop(jobs);
    /// # Ok(())
    /// # }
    /// ```
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets what to call this replica where the nodes remember its runs: 1 to 64 bytes, without spaces and control
    /// characters.
    ///
    /// Default: what `HOSTNAME` says, and the process's number.
    /// It is for people; nothing is decided by it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_cron::SingletonScheduler;
    /// use std::env;
    ///
    /// // The name that Kubernetes gives the pod.
    /// let pod = env::var("POD_NAME").unwrap_or_else(|_| "billing-1".to_owned());
    /// let jobs = SingletonScheduler::standalone(redlock).namespace("billing").replica(pod).build()?;
    /// # drop(jobs);
    /// # Ok(())
    /// # }
    /// ```
    pub fn replica(mut self, name: impl Into<String>) -> Self {
        self.replica = Some(name.into());
        self
    }

    /// Calls `hook` with each run that begins on this replica, right before its job.
    ///
    /// It is called once for a run, whatever its [tries](crate::SingletonJob::tries), on the run's task and in its span,
    /// so it must not block; the lease is held.
    /// The end of the run is for [`on_outcome`](Self::on_outcome), and what is to keep it from its start for
    /// [`only_if`](crate::SingletonJob::only_if).
    /// A panic in it is logged and has no other effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use redlock_cron::SingletonScheduler;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let jobs = SingletonScheduler::standalone(redlock)
    ///     .namespace("billing")
    ///     .on_start(|run| println!("{} of {} begins", run.name(), run.tick()))
    ///     .on_outcome(|report| println!("{} of {}: {}", report.job(), report.tick(), report.outcome()))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_start(mut self, hook: impl Fn(&Run) + Send + Sync + 'static) -> Self {
        self.start = Some(Box::new(hook));
        self
    }

    /// Calls `hook` with the report of each tick.
    ///
    /// It is called on the task that dealt with the tick, between the end of the run and the release
    /// of its lease, so it must not block.
    /// A panic in it is logged and has no other effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_cron::{BoxError, SingletonJob, SingletonScheduler};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let jobs = SingletonScheduler::standalone(redlock)
    ///     .namespace("billing")
    ///     .on_outcome(move |report| {
    ///         let _ = tell.send((report.job().to_owned(), report.outcome().as_str()));
    ///     })
    ///     .build()?;
    /// # let minutes = Duration::from_secs(300);
    /// # jobs.add(SingletonJob::every("sweep", minutes, |_| async { Ok::<(), BoxError>(()) })).await?;
    /// jobs.trigger_now("sweep").await?;
    /// assert_eq!(told.recv()?, ("sweep".to_owned(), "ok"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_outcome(mut self, hook: impl Fn(&TickReport) + Send + Sync + 'static) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// Refuses to add a job that was run under another schedule or other policies within so much time, as far as the
    /// nodes remember its last runs; off by default.
    ///
    /// It is how a service notices at its start that another one uses its namespace, or that it is configured
    /// otherwise than its replicas.
    /// Without it, replicas that disagree warn, and [`JobStatus::disagreeing`](crate::JobStatus::disagreeing) counts
    /// them.
    /// With it, a deployment that changes a job must stop all replicas for so long first, so leave it off where they
    /// are replaced one by one.
    /// If too few nodes answer to tell, the job is added with a warning.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_cron::SingletonScheduler;
    /// use std::time::Duration;
    ///
    /// // All replicas are stopped for an hour before a deployment that changes a job.
    /// let jobs = SingletonScheduler::standalone(redlock)
    ///     .namespace("billing")
    ///     .refuse_disagreement(Duration::from_secs(3_600))
    ///     .build()?;
    /// # drop(jobs);
    /// # Ok(())
    /// # }
    /// ```
    pub fn refuse_disagreement(mut self, within: Duration) -> Self {
        self.agreed_within = Some(within);
        self
    }

    /// Sets how many runs may go on at the same time on this replica, of all jobs of this scheduler: from 1 to 1,000,000.
    ///
    /// Default: without a limit.
    /// A tick that is due while there are as many waits for the end of one before its claim, so that another replica may
    /// start it meanwhile; if none has when it is too late, it is reported as [`NoPlace`](crate::Outcome::NoPlace).
    /// Those that wait have their turn in the order in which they asked for a place, which need not be that in which
    /// they were due: each asks after its part of the [spread](crate::SingletonJob::spread), and one that is tried again asks
    /// again.
    /// With [`Overlap::Skip`](crate::Overlap::Skip), a tick that waits for the place which a run of its own job has is
    /// started after that run, if it is not too late: it was never in its way.
    /// A run that somebody [asked for](SingletonScheduler::trigger_now) waits as well.
    /// With [`Overlap::Wait`](crate::Overlap::Wait), a tick has a place while it waits for a run on another replica.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use redlock_cron::SingletonScheduler;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// // Not more than the pool of database connections has to spare.
    /// let jobs = SingletonScheduler::standalone(redlock).namespace("billing").max_runs(4).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_runs(mut self, most: usize) -> Self {
        self.max_runs = Some(most);
        self
    }

    /// Has the scheduler go by a clock that a test has set, instead of the machine's; with the feature `test-util`.
    ///
    /// The client must be in [virtual time](redlock_core::RedlockBuilder::virtual_time), and then the scheduler must have
    /// such a clock; [`build`](Self::build) refuses one without the other.
    /// It is not woken up by tokio-cron-scheduler then, which knows the machine's clock only: one that it was
    /// [given](SingletonScheduler::builder) is not started.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use redlock_cron::{JobClock, SingletonScheduler};
    ///
    /// // In #[tokio::test(start_paused = true)]:
    /// let clock = JobClock::starting_at("2026-11-21T18:00:00Z".parse()?);
    /// let redlock = Redlock::builder().nodes(clock.nodes(3)).virtual_time().build().await?;
    /// let jobs = SingletonScheduler::standalone(redlock).namespace("billing").clock(&clock).build()?;
    /// # drop(jobs);
    /// # Ok(())
    /// # }
    /// ```
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
    /// valid, `max_runs` is out of its range, or the client is in virtual time and the scheduler has no clock for it, or
    /// the other way round.
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
        let clock: Arc<dyn Clock> = match (self.clock, self.redlock.is_in_virtual_time()) {
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
        let observer = Observer::new(self.hook).on_start(self.start);
        let replica = Replica::new(
            self.redlock,
            &self.namespace,
            self.replica,
            observer,
            clock,
            self.max_runs,
        )?;
        let agreed_within = self.agreed_within;
        let scheduler = SingletonScheduler::new(self.scheduler, replica, agreed_within);
        #[cfg(feature = "test-util")]
        scheduler.tell_clock();
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
