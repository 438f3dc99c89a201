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
    /// The signals of the scheduler, which are those of all its jobs too; its tasks are those of this.
    signals: JobSignals,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    /// The number that was used last.
    last: u64,
    in_flight: HashMap<u64, Running>,
    ends: Vec<UnderWay>,
}

/// The end of a scheduler, or of one job, which collects each run that is dropped meanwhile.
///
/// Ends may overlap: each reports all runs that it has collected.
struct UnderWay {
    /// The number of the signals.
    of: u64,
    dropped: Weak<Mutex<Vec<UnfinishedRun>>>,
}

struct Running {
    run: UnfinishedRun,
    trigger: Trigger,
    ending: u64,
}

impl Running {
    /// Returns whether the signals of this number end it: those of its job, or those of the scheduler.
    fn is_ended_by(&self, signals: u64) -> bool {
        signals == 0 || signals == self.ending
    }
}

impl Runs {
    /// Returns a number that was not used before.
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn of_job(&self, job: &str) -> impl Iterator<Item = &Running> {
        let all = self.in_flight.values();
        all.filter(move |running| &*running.run.job == job)
    }
}

/// The signals that end the runs of one job: with the scheduler's runs, or before, if the job is removed.
///
/// A job that takes the place of another has the same signals, except `draining`.
#[derive(Clone, Default)]
pub(crate) struct JobSignals {
    /// Of the scheduler's, it is zero.
    id: u64,
    /// Cancelled when nothing may be started any more.
    pub(crate) draining: CancellationToken,
    /// Cancelled with `draining`, but not when another job takes the place: runs in flight should end soon.
    pub(crate) leaving: CancellationToken,
    /// Cancelled when runs in flight must stop.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when runs in flight must be dropped.
    pub(crate) dropping: CancellationToken,
    /// The runs in flight, until their leases are given back; of the scheduler, all of its tasks.
    runs: TaskTracker,
}

/// A run that was let start and has not ended.
pub(crate) struct RunInFlight {
    tasks: Arc<Tasks>,
    id: u64,
}

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.signals.runs.spawn(task);
    }

    /// Returns the signals of a job that is added now.
    pub(crate) fn ending(&self) -> JobSignals {
        let signals = &self.signals;
        JobSignals {
            id: self.runs.lock().number(),
            draining: signals.draining.child_token(),
            leaving: signals.draining.child_token(),
            stopping: signals.stopping.child_token(),
            dropping: signals.dropping.child_token(),
            runs: TaskTracker::new(),
        }
    }

    /// Returns the signals of a job that takes the place of another, of which nothing starts any more.
    pub(crate) fn hand_over(&self, before: &JobSignals) -> JobSignals {
        self.close(before);
        JobSignals {
            draining: self.signals.draining.child_token(),
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
        let id = runs.number();
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
        self.signals.runs.len() > 1
    }

    /// Resolves when nothing may be started any more.
    pub(crate) fn draining(&self) -> &CancellationToken {
        &self.signals.draining
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.signals.is_draining()
    }

    pub(crate) fn drain(&self) {
        self.close(&self.signals);
    }

    /// Drains, and drops the runs in flight without waiting for them.
    pub(crate) fn abandon(&self) {
        self.drain();
        self.signals.dropping.cancel();
    }

    /// Drains, waits for the runs in flight up to `grace`, then tells them to stop, and drops them.
    pub(crate) async fn shut_down(&self, grace: Duration) -> ShutdownReport {
        self.end(&self.signals, grace).await
    }

    /// Starts nothing more of one job.
    pub(crate) fn close(&self, signals: &JobSignals) {
        let _runs = self.runs.lock();
        signals.draining.cancel();
    }

    /// Waits for the runs of a job in flight up to `grace`, then tells them to stop, and drops them.
    pub(crate) async fn end(&self, signals: &JobSignals, grace: Duration) -> ShutdownReport {
        self.close(signals);
        signals.leaving.cancel();
        signals.runs.close();
        let dropped = self.collect_dropped(signals.id);
        signals.wind_down(grace).await;
        let runs = self.runs.lock();
        let mut unfinished = std::mem::take(&mut *dropped.lock());
        let running = runs.in_flight.values();
        let running = running.filter(|running| running.is_ended_by(signals.id));
        unfinished.extend(running.map(|running| running.run.clone()));
        ShutdownReport { unfinished }
    }

    /// Returns a list to which each run that is dropped from now on is added, as long as the list lives.
    fn collect_dropped(&self, of: u64) -> Arc<Mutex<Vec<UnfinishedRun>>> {
        let list = Arc::default();
        let dropped = Arc::downgrade(&list);
        let mut runs = self.runs.lock();
        runs.ends.retain(|end| end.dropped.strong_count() > 0);
        runs.ends.push(UnderWay { of, dropped });
        list
    }
}

impl JobSignals {
    /// Returns whether nothing may be started any more.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Waits for the runs up to `grace`, then tells them to stop, and drops them.
    async fn wind_down(&self, grace: Duration) {
        let runs = &self.runs;
        if timeout(grace, runs.wait()).await.is_err() {
            self.stopping.cancel();
            let _ = timeout(STOP_GRACE, runs.wait()).await;
            self.dropping.cancel();
            // What is left: leases to release, which takes at most the nodes' time limit, and runs that
            // block their threads, which the scheduler cannot end.
            let _ = timeout(CLEAN_UP, runs.wait()).await;
        }
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
        if let Some(running) = runs.in_flight.remove(&self.id) {
            let run = UnfinishedRun {
                dropped: true,
                ..running.run.clone()
            };
            let ends = runs.ends.iter();
            let concerned = ends.filter(|end| running.is_ended_by(end.of));
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

/// How long a run may take to end once it was told to stop.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(1);

/// For how long a shutdown waits for the clean-up after runs that were dropped.
const CLEAN_UP: Duration = Duration::from_secs(5);
