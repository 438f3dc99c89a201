//! The one module that spawns tasks, counts the runs in flight and ends them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{ShutdownReport, Trigger, UnfinishedRun};

/// The tasks of one scheduler.
///
/// tokio-cron-scheduler's own shutdown waits for nothing and goes on to start jobs for half a second
/// after it, so whether a run may start is decided here.
#[derive(Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    draining: CancellationToken,
    stopping: CancellationToken,
    dropping: CancellationToken,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    next: u64,
    in_flight: HashMap<u64, Running>,
    dropped: Vec<UnfinishedRun>,
}

struct Running {
    run: UnfinishedRun,
    trigger: Trigger,
}

/// A run that was let start and has not ended.
pub(crate) struct InFlight {
    tasks: Arc<Tasks>,
    id: u64,
}

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(task);
    }

    /// Lets a run start, unless a shutdown has begun.
    pub(crate) fn start(
        self: &Arc<Self>,
        job: &Arc<str>,
        tick: DateTime<Utc>,
        trigger: Trigger,
    ) -> Option<InFlight> {
        // Under the lock that `drain` takes: a run that it did not see never starts.
        let mut runs = self.runs();
        if self.draining.is_cancelled() {
            return None;
        }
        let id = runs.next;
        runs.next += 1;
        let run = UnfinishedRun {
            job: Arc::clone(job),
            tick,
            dropped: false,
        };
        runs.in_flight.insert(id, Running { run, trigger });
        Some(InFlight {
            tasks: Arc::clone(self),
            id,
        })
    }

    /// Returns whether a run of the job is in flight that was due or that somebody asked for.
    pub(crate) fn is_running(&self, job: &str) -> bool {
        let runs = self.runs();
        let mut of_job = runs
            .in_flight
            .values()
            .filter(|running| &*running.run.job == job);
        of_job.any(|running| !running.trigger.is_making_up())
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Resolves when nothing may be started any more.
    pub(crate) async fn draining(&self) {
        self.draining.cancelled().await;
    }

    /// Resolves when runs in flight must stop.
    pub(crate) async fn stopping(&self) {
        self.stopping.cancelled().await;
    }

    /// Resolves when runs in flight must be dropped.
    pub(crate) async fn dropping(&self) {
        self.dropping.cancelled().await;
    }

    pub(crate) fn drain(&self) {
        let _runs = self.runs();
        self.draining.cancel();
    }

    /// Drains, and drops the runs in flight without waiting for them.
    pub(crate) fn abandon(&self) {
        self.drain();
        self.dropping.cancel();
    }

    /// Drains, waits for the runs in flight up to `grace`, then tells them to stop, and drops them.
    pub(crate) async fn shut_down(&self, grace: Duration) -> ShutdownReport {
        self.drain();
        self.tracker.close();
        if timeout(grace, self.tracker.wait()).await.is_err() {
            self.stopping.cancel();
            let _ = timeout(STOP_GRACE, self.tracker.wait()).await;
            self.dropping.cancel();
            // What is left is to release leases, which is bounded by the nodes' time limit, and runs
            // that block their threads, which nobody can end.
            let _ = timeout(CLEAN_UP, self.tracker.wait()).await;
        }
        let mut runs = self.runs();
        let mut unfinished = std::mem::take(&mut runs.dropped);
        unfinished.extend(runs.in_flight.values().map(|running| running.run.clone()));
        ShutdownReport { unfinished }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        // Nothing panics while the lock is held.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlight {
    /// Says that the run was dropped before it finished.
    pub(crate) fn dropped(self) {
        let mut runs = self.tasks.runs();
        if let Some(Running { run, .. }) = runs.in_flight.remove(&self.id) {
            runs.dropped.push(UnfinishedRun {
                dropped: true,
                ..run
            });
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.tasks.runs().in_flight.remove(&self.id);
    }
}

/// How long a run may take to end once it was told to stop.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(1);

/// For how long a shutdown waits for the clean-up after runs that were dropped.
const CLEAN_UP: Duration = Duration::from_secs(5);
