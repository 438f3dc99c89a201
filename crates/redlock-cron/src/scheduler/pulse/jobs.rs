use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

#[cfg(any(feature = "test-util", feature = "tokio-cron-scheduler"))]
use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use redlock_core::Tick;
use tokio::time::{Instant, sleep};

#[cfg(feature = "tokio-cron-scheduler")]
use crate::clock::lag;
use crate::{
    control::answer_bell,
    replica::Replica,
    tick::{JobRunner, random_up_to},
};

/// The jobs of a scheduler by name, and when they were woken up.
pub(crate) struct Jobs {
    replica: Arc<Replica>,
    state: Mutex<JobsState>,
    bell: Arc<RequestWatch>,
    is_registering: Arc<AtomicBool>,
}

struct JobsState {
    by_name: BTreeMap<String, Arc<JobRunner>>,
    /// When the alarm came last, or was set.
    #[cfg(feature = "tokio-cron-scheduler")]
    alarm: Instant,
    /// What this replica's clock showed when ticks were looked for last.
    #[cfg(feature = "tokio-cron-scheduler")]
    looked: DateTime<Utc>,
}

impl Jobs {
    /// Makes room for jobs, whose alarm is set now.
    pub(crate) fn new(replica: Arc<Replica>) -> Self {
        let state = Mutex::new(JobsState {
            by_name: BTreeMap::new(),
            #[cfg(feature = "tokio-cron-scheduler")]
            alarm: Instant::now(),
            #[cfg(feature = "tokio-cron-scheduler")]
            looked: replica.clock.now(),
        });
        Self {
            replica,
            state,
            bell: Arc::default(),
            is_registering: Arc::default(),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<JobRunner>> {
        self.state.lock().by_name.get(name).map(Arc::clone)
    }

    /// Adds a job, in the place of the one with its name if there is one.
    pub(crate) fn insert(&self, name: String, mut runner: JobRunner) -> Arc<JobRunner> {
        let mut state = self.state.lock();
        // Under the lock, so that no job is taken over that is removed meanwhile.
        if let Some(before) = state.by_name.get(&name) {
            runner.take_over(before);
        }
        let runner = Arc::new(runner);
        let before = state.by_name.insert(name, Arc::clone(&runner));
        drop(state);
        // It may have been requested before it was here.
        self.bell.forget();
        #[cfg(feature = "metrics")]
        if let Some(before) = &before {
            before.measure_not_overdue();
        }
        // What it has captured is the application's, which may ask for the lock.
        drop(before);
        runner
    }

    /// Removes a job, so that nothing more of it is started.
    pub(crate) fn remove(&self, name: &str) -> Option<Arc<JobRunner>> {
        let mut state = self.state.lock();
        let runner = state.by_name.remove(name)?;
        self.replica.tasks.close(&runner.job.ending);
        Some(runner)
    }

    /// Returns the names, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.state.lock().by_name.keys().cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<JobRunner>> {
        self.state.lock().by_name.values().map(Arc::clone).collect()
    }

    /// Wakes up because the alarm came.
    #[cfg(feature = "tokio-cron-scheduler")]
    pub(crate) fn alarm_came(&self) {
        self.alarm_was_set();
        self.wake();
    }

    /// Expects the alarm from now on.
    #[cfg(feature = "tokio-cron-scheduler")]
    pub(crate) fn alarm_was_set(&self) {
        self.state.lock().alarm = Instant::now();
    }

    /// Wakes those jobs up that have a tick which is due or will be soon.
    ///
    /// Each of them has a task of its own, so that none waits until the ticks of the others are found.
    pub(crate) fn wake(&self) {
        #[cfg(feature = "tokio-cron-scheduler")]
        {
            self.state.lock().looked = self.replica.clock.now();
        }
        for runner in self.all() {
            #[cfg(feature = "metrics")]
            runner.measure_next();
            if runner.is_due() {
                self.replica.tasks.spawn(async move { runner.wake() });
            }
        }
    }

    /// Looks at what the nodes remember that concerns no tick.
    pub(crate) fn look_at_nodes(&self) {
        // First, so that a job which comes now is among those that look, or has the next look find all requests.
        let looks = self.bell.begin();
        let jobs = self.all();
        for runner in &jobs {
            runner.look_for_success();
        }
        self.register(&jobs);
        if !looks {
            return;
        }
        let (replica, bell) = (Arc::clone(&self.replica), Arc::clone(&self.bell));
        self.replica.tasks.spawn(async move {
            let key = replica.namespace.bell_key();
            let rung = answer_bell(&replica.claims, key, bell.found(), &jobs).await;
            bell.end(rung);
        });
    }

    /// Registers the jobs for which that is due, one after another, so that ticks have the nodes first.
    fn register(&self, jobs: &[Arc<JobRunner>]) {
        let due = jobs
            .iter()
            .filter(|runner| runner.job.registration.is_due());
        let mut due: Vec<_> = due.map(Arc::clone).collect();
        if due.is_empty() || self.is_registering.swap(true, Ordering::Relaxed) {
            return;
        }
        // Replicas that start together begin with other jobs, and find those that another has registered.
        let first = random_up_to(Duration::from_millis(due.len() as u64 - 1)).as_millis();
        due.rotate_left(usize::try_from(first).unwrap_or(0));
        let (replica, is_registering) =
            (Arc::clone(&self.replica), Arc::clone(&self.is_registering));
        self.replica.tasks.spawn(async move {
            let registering = async {
                for runner in due {
                    if !runner.job.ending.is_draining() {
                        runner.register().await;
                        sleep(BETWEEN_REGISTRATIONS).await;
                    }
                }
            };
            let draining = replica.tasks.draining();
            draining.run_until_cancelled(registering).await;
            is_registering.store(false, Ordering::Relaxed);
        });
    }

    /// Updates the metric of the next tick of each job: no job has one once nothing is started any more.
    #[cfg(feature = "metrics")]
    pub(crate) fn measure_next(&self) {
        for runner in self.all() {
            runner.measure_next();
        }
    }

    /// Returns the first tick that no job has found yet.
    #[cfg(feature = "test-util")]
    pub(crate) fn next_tick(&self) -> Option<DateTime<Utc>> {
        let runners = self.all().into_iter();
        runners.filter_map(|runner| runner.next_tick()).min()
    }

    /// Notes that the nodes' time is not the expected one.
    pub(crate) fn clock_was_set(&self) {
        for runner in self.all() {
            runner.clock_was_set();
        }
    }

    /// Returns by how much the clock was set back since ticks were looked for, as far as can be told.
    #[cfg(feature = "tokio-cron-scheduler")]
    pub(crate) fn set_back_by(&self) -> Duration {
        lag(self.replica.clock.now(), self.state.lock().looked)
    }

    /// Returns for how long the alarm has not come.
    #[cfg(feature = "tokio-cron-scheduler")]
    pub(crate) fn silence(&self) -> Duration {
        self.state.lock().alarm.elapsed()
    }
}

/// The looks of this replica for requests for runs, which ring the bell of its namespace.
#[derive(Default)]
struct RequestWatch(Mutex<RequestWatchState>);

#[derive(Default)]
struct RequestWatchState {
    /// The newest moment of the bell of which the requests were found.
    found: Option<Tick>,
    is_looking: bool,
    /// Whether a job has come since the look began.
    has_new_job: bool,
    /// At once, if it is not said.
    next: Option<Instant>,
}

impl RequestWatch {
    /// Returns whether the caller must look now.
    fn begin(&self) -> bool {
        let mut bell = self.0.lock();
        let is_due = bell.next.is_none_or(|next| next <= Instant::now());
        if !is_due || std::mem::replace(&mut bell.is_looking, true) {
            return false;
        }
        bell.has_new_job = false;
        true
    }

    /// Returns the newest moment of which the requests were found.
    fn found(&self) -> Option<Tick> {
        self.0.lock().found
    }

    /// Notes the end of a look, which has found the requests up to the moment `rung`; `None` if it found out nothing.
    fn end(&self, rung: Option<Tick>) {
        let mut bell = self.0.lock();
        bell.is_looking = false;
        bell.next = Some(Instant::now() + BETWEEN_LOOKS);
        if !bell.has_new_job {
            bell.found = rung.max(bell.found);
        }
    }

    /// Lets the next look find all requests, because there is a new job.
    fn forget(&self) {
        let mut bell = self.0.lock();
        bell.found = None;
        bell.has_new_job = true;
    }
}

/// How long to wait between the registrations of two jobs.
const BETWEEN_REGISTRATIONS: Duration = Duration::from_millis(5);

/// How long to wait between two looks for requests.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
