use std::{fmt, sync::Arc};

use redlock_core::Redlock;
use tokio_cron_scheduler::JobScheduler;

use crate::{
    SetupError, SingletonScheduler, TickReport,
    clock::SystemClock,
    observer::{Observer, OutcomeHook},
    replica::Replica,
};

/// Describes a scheduler; made by [`SingletonScheduler::builder`].
///
/// The namespace has no default.
#[must_use = "a builder does nothing until `build` is called"]
pub struct SingletonSchedulerBuilder {
    redlock: Redlock,
    scheduler: JobScheduler,
    namespace: String,
    replica: Option<String>,
    hook: Option<OutcomeHook>,
}

impl SingletonSchedulerBuilder {
    pub(crate) fn new(redlock: Redlock, scheduler: JobScheduler) -> Self {
        Self {
            redlock,
            scheduler,
            namespace: String::new(),
            replica: None,
            hook: None,
        }
    }

    /// The namespace of the jobs' names: 1 to 64 bytes, without control characters and slashes.
    ///
    /// It is the service's name, in most cases: the same on all of its replicas, and on nothing else
    /// that uses the same nodes.
    /// Two services with a job `cleanup` in one namespace would take each other's ticks.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// What to call this replica where the nodes remember its runs: 1 to 64 bytes, without spaces and control
    /// characters.
    ///
    /// Default: what `HOSTNAME` says, and the process's number.
    /// It is for people; nothing is decided by it.
    pub fn replica(mut self, name: impl Into<String>) -> Self {
        self.replica = Some(name.into());
        self
    }

    /// Calls `hook` with the report of each tick.
    ///
    /// It is called on the task that dealt with the tick, between the end of the run and the release
    /// of its lease, so it must not block.
    /// A panic in it is logged and has no other effect.
    pub fn on_outcome(mut self, hook: impl Fn(&TickReport) + Send + Sync + 'static) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::SetupErrorKind::Misuse): the namespace is missing or not valid, or the
    /// replica's name is not valid.
    pub fn build(self) -> Result<SingletonScheduler, SetupError> {
        let observer = Observer::new(self.hook);
        let replica = Replica::new(
            self.redlock,
            &self.namespace,
            self.replica,
            observer,
            Arc::new(SystemClock),
        )?;
        Ok(SingletonScheduler::new(self.scheduler, replica))
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
