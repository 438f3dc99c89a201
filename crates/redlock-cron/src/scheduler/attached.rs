//! The tokio-cron-scheduler of the application that wakes jobs up.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{sync::Mutex, time::timeout};
use tokio_cron_scheduler::{JobScheduler, JobSchedulerError};

use crate::{
    SetupError,
    scheduler::pulse::{JobAlarm, Jobs, WatchedAlarm},
};

/// The application's scheduler, and the alarm on it once it was set.
pub(super) struct Attached {
    scheduler: JobScheduler,
    alarm: Mutex<Option<(JobAlarm, Attachment)>>,
}

impl Attached {
    pub(super) fn new(scheduler: JobScheduler) -> Self {
        Self {
            scheduler,
            alarm: Mutex::default(),
        }
    }

    /// Starts tokio-cron-scheduler, with the job that wakes up all others.
    pub(super) async fn set_alarm(
        &self,
        jobs: &Arc<Jobs>,
        is_started: bool,
    ) -> Result<WatchedAlarm, SetupError> {
        let refused = |why| move |error| SetupError::scheduler(why, error);
        let scheduler = &self.scheduler;
        if is_shut_down(scheduler).await {
            let error = JobSchedulerError::StartScheduler;
            return Err(refused("it was shut down before")(error));
        }
        if is_started {
            return Err(SetupError::started_before());
        }
        let mut set = self.alarm.lock().await;
        let alarm = match &*set {
            Some((alarm, _)) => alarm.clone(),
            None => {
                let attachment = Attachment::of(scheduler).ok_or_else(|| {
                    let why = "another SingletonScheduler has it, whose shutdown would end both: add all jobs to that one";
                    refused(why)(JobSchedulerError::CantAdd)
                })?;
                let alarm = JobAlarm::set(scheduler, jobs).await;
                let alarm = alarm.map_err(refused("it did not take a job"))?;
                set.insert((alarm, attachment)).0.clone()
            }
        };
        // The application may have started it, which a second start would refuse.
        if !is_running(scheduler).await {
            let started = scheduler.start().await;
            started.map_err(refused("it did not start"))?;
        }
        jobs.alarm_was_set();
        Ok(WatchedAlarm::new(alarm))
    }

    /// Shuts tokio-cron-scheduler down, and the application's shutdown handler with it, which nothing bounds.
    ///
    /// It waits for no job, and wakes jobs up for another half second.
    pub(super) async fn end(&self) {
        match timeout(SCHEDULER_GRACE, self.scheduler.clone().shutdown()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(target: crate::TARGET, error = error.to_string(), "tokio-cron-scheduler did not shut down");
            }
            Err(_) => {
                tracing::warn!(target: crate::TARGET, "tokio-cron-scheduler's shutdown handler did not end");
            }
        }
    }
}

/// How long tokio-cron-scheduler may take to shut down; without a handler it takes no time.
const SCHEDULER_GRACE: Duration = Duration::from_secs(5);

/// The use of a tokio-cron-scheduler by one scheduler of ours, which ends when this is dropped.
struct Attachment(JobScheduler);

impl Attachment {
    /// Returns the use of `scheduler`, unless it has another one in this process.
    fn of(scheduler: &JobScheduler) -> Option<Self> {
        let mut all = ATTACHED.lock();
        let address = address(scheduler);
        let is_free = !all.contains(&address);
        is_free.then(|| {
            all.push(address);
            Self(scheduler.clone())
        })
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut all = ATTACHED.lock();
        let address = address(&self.0);
        all.retain(|attached| *attached != address);
    }
}

fn address(scheduler: &JobScheduler) -> usize {
    Arc::as_ptr(&scheduler.scheduler).addr()
}

/// The addresses of what all handles of a tokio-cron-scheduler share, of those that are used.
static ATTACHED: parking_lot::Mutex<Vec<usize>> = parking_lot::Mutex::new(Vec::new());

/// Returns whether tokio-cron-scheduler was started.
async fn is_running(scheduler: &JobScheduler) -> bool {
    let scheduler = scheduler.scheduler.read().await;
    scheduler.ticking.load(Ordering::Relaxed)
}

/// Returns whether the application has shut tokio-cron-scheduler down, which starts all the same then, and does nothing.
async fn is_shut_down(scheduler: &JobScheduler) -> bool {
    let scheduler = scheduler.scheduler.read().await;
    scheduler.shutdown.load(Ordering::Relaxed)
}
