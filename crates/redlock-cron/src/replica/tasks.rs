//! The one module that spawns tasks, counts the runs in flight and ends them.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::time::timeout;
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use crate::{ShutdownReport, Trigger, UnfinishedRun};

/// The tasks of one scheduler.
///
/// tokio-cron-scheduler's own shutdown waits for nothing and goes on to start jobs for half a second
/// after it, so whether a run may start is decided here.
#[derive(Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    /// Cancelled when nothing may be started any more.
    pub(crate) draining: CancellationToken,
    stopping: CancellationToken,
    dropping: CancellationToken,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    next: u64,
    in_flight: HashMap<u64, Running>,
    ends: Vec<UnderWay>,
}

/// The end of a scheduler, or of one job, which collects each run that is dropped meanwhile.
///
/// Ends may overlap: each reports all runs that it has collected.
struct UnderWay {
    /// The number of the job's ending, if it is that of one job.
    of: Option<u64>,
    dropped: Weak<Mutex<Vec<UnfinishedRun>>>,
}

struct Running {
    run: UnfinishedRun,
    trigger: Trigger,
    ending: u64,
}

impl Runs {
    fn of_job(&self, job: &str) -> impl Iterator<Item = &Running> {
        let all = self.in_flight.values();
        all.filter(move |running| &*running.run.job == job)
    }
}

/// The signals that end the runs of one job: with the scheduler's runs, or before, if the job is removed.
///
/// A job that takes the place of another has the same signals, except `draining`.
#[derive(Clone)]
pub(crate) struct JobSignals {
    id: u64,
    /// Cancelled when nothing may be started any more.
    pub(crate) draining: CancellationToken,
    /// Cancelled with `draining`, but not when another job takes the place: runs in flight should end soon.
    pub(crate) leaving: CancellationToken,
    /// Cancelled when runs in flight must stop.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when runs in flight must be dropped.
    pub(crate) dropping: CancellationToken,
    /// The runs in flight, until their leases are given back.
    runs: TaskTracker,
}

/// A run that was let start and has not ended.
pub(crate) struct RunInFlight {
    tasks: Arc<Tasks>,
    id: u64,
}

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(task);
    }

    /// Returns the signals of a job that is added now.
    pub(crate) fn ending(&self) -> JobSignals {
        let mut runs = self.runs.lock();
        let id = runs.next;
        runs.next += 1;
        JobSignals {
            id,
            draining: self.draining.child_token(),
            leaving: self.draining.child_token(),
            stopping: self.stopping.child_token(),
            dropping: self.dropping.child_token(),
            runs: TaskTracker::new(),
        }
    }

    /// Returns the signals of a job that takes the place of another, of which nothing starts any more.
    pub(crate) fn hand_over(&self, before: &JobSignals) -> JobSignals {
        self.close(before);
        JobSignals {
            draining: self.draining.child_token(),
            ..before.clone()
        }
    }

    /// Lets a run start, unless a shutdown has begun or its job was removed.
    pub(crate) fn start(
        self: &Arc<Self>,
        job: &Arc<str>,
        tick: DateTime<Utc>,
        trigger: Trigger,
        ending: &JobSignals,
    ) -> Option<RunInFlight> {
        // Under the lock that `drain` and `close` take: a run that they did not see never starts.
        let mut runs = self.runs.lock();
        if ending.draining.is_cancelled() {
            return None;
        }
        let id = runs.next;
        runs.next += 1;
        let run = UnfinishedRun {
            job: Arc::clone(job),
            tick,
            dropped: false,
        };
        let running = Running {
            run,
            trigger,
            ending: ending.id,
        };
        runs.in_flight.insert(id, running);
        Some(RunInFlight {
            tasks: Arc::clone(self),
            id,
        })
    }

    /// Returns whether a run of the job is in flight.
    pub(crate) fn is_running(&self, job: &str) -> bool {
        self.runs.lock().of_job(job).next().is_some()
    }

    /// Returns whether a run of the job is in flight that was due or requested.
    pub(crate) fn is_running_in_time(&self, job: &str) -> bool {
        let runs = self.runs.lock();
        runs.of_job(job)
            .any(|running| !running.trigger.is_making_up())
    }

    /// Returns whether there are tasks besides the one that looks for ticks: each tick that is found has one until it is
    /// dealt with.
    #[cfg(feature = "test-util")]
    pub(crate) fn is_busy(&self) -> bool {
        self.tracker.len() > 1
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    pub(crate) fn drain(&self) {
        let _runs = self.runs.lock();
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
        let dropped = self.collect_dropped(None);
        wind_down(&self.tracker, &self.stopping, &self.dropping, grace).await;
        self.report(&dropped, |_| true)
    }

    /// Starts nothing more of one job.
    pub(crate) fn close(&self, ending: &JobSignals) {
        let _runs = self.runs.lock();
        ending.draining.cancel();
    }

    /// Waits for the runs of a job in flight up to `grace`, then tells them to stop, and drops them.
    pub(crate) async fn end(&self, ending: &JobSignals, grace: Duration) -> ShutdownReport {
        self.close(ending);
        ending.leaving.cancel();
        ending.runs.close();
        let dropped = self.collect_dropped(Some(ending.id));
        wind_down(&ending.runs, &ending.stopping, &ending.dropping, grace).await;
        self.report(&dropped, |running| running.ending == ending.id)
    }

    /// Returns a list to which each run that is dropped from now on is added, as long as the list lives.
    fn collect_dropped(&self, of: Option<u64>) -> Arc<Mutex<Vec<UnfinishedRun>>> {
        let list = Arc::default();
        let dropped = Arc::downgrade(&list);
        let mut runs = self.runs.lock();
        runs.ends.retain(|end| end.dropped.strong_count() > 0);
        runs.ends.push(UnderWay { of, dropped });
        list
    }

    /// Reports the runs that were dropped, and those that are still in flight.
    fn report(
        &self,
        dropped: &Mutex<Vec<UnfinishedRun>>,
        concerns: impl Fn(&Running) -> bool,
    ) -> ShutdownReport {
        let runs = self.runs.lock();
        let mut unfinished = std::mem::take(&mut *dropped.lock());
        let running = runs.in_flight.values().filter(|running| concerns(running));
        unfinished.extend(running.map(|running| running.run.clone()));
        ShutdownReport { unfinished }
    }
}

impl JobSignals {
    /// Returns whether nothing may be started any more.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Returns the token of a run: the end of the job waits until it is dropped.
    pub(crate) fn run(&self) -> TaskTrackerToken {
        self.runs.token()
    }
}

impl RunInFlight {
    /// Records that the run was dropped before it finished.
    pub(crate) fn dropped(self) {
        let mut runs = self.tasks.runs.lock();
        if let Some(Running { run, ending, .. }) = runs.in_flight.remove(&self.id) {
            let run = UnfinishedRun {
                dropped: true,
                ..run
            };
            let ends = runs.ends.iter();
            let concerned = ends.filter(|end| end.of.is_none_or(|of| of == ending));
            for dropped in concerned.filter_map(|end| end.dropped.upgrade()) {
                dropped.lock().push(run.clone());
            }
        }
    }
}

impl Drop for RunInFlight {
    fn drop(&mut self) {
        self.tasks.runs.lock().in_flight.remove(&self.id);
    }
}

/// Waits for runs up to `grace`, then tells them to stop, and drops them.
async fn wind_down(
    runs: &TaskTracker,
    stopping: &CancellationToken,
    dropping: &CancellationToken,
    grace: Duration,
) {
    if timeout(grace, runs.wait()).await.is_err() {
        stopping.cancel();
        let _ = timeout(STOP_GRACE, runs.wait()).await;
        dropping.cancel();
        // What is left: leases to release, which takes at most the nodes' time limit, and runs that
        // block their threads, which the scheduler cannot end.
        let _ = timeout(CLEAN_UP, runs.wait()).await;
    }
}

/// How long a run may take to end once it was told to stop.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(1);

/// For how long a shutdown waits for the clean-up after runs that were dropped.
const CLEAN_UP: Duration = Duration::from_secs(5);
