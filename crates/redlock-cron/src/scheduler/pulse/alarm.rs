//! The one job that tokio-cron-scheduler has of ours, and the care that it needs.
//!
//! The scheduler looks at its jobs every half second, so that the alarm comes within half a second after each second.
//! It calls a job under a lock that a panic would poison for good, so nothing happens in the call; and it puts no bound on
//! the futures it gets, so these end soon, and what they start are tasks of ours.
//!
//! tokio-cron-scheduler stores the instant at which the alarm is due next, and compares the machine's clock with it.
//! So a clock that was years ahead, and is set right, would silence all jobs for years.
//! A step forwards needs no care: what is due then is found at the next look, half a second later at most.
//!
//! The alarm's activation goes through a channel that drops the oldest when it is full, and an application with many jobs
//! of its own may fill it in every second.
//! A lost activation is made up for by the next.
//! If all are lost, tokio-cron-scheduler has done its part, so jobs are woken up in place of the alarm.
//! They are not in place of a scheduler that was shut down: an application does that to start nothing more.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::time::Instant;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use uuid::Uuid;

use super::jobs::Jobs;

/// An alarm, and how it has come so far.
pub(crate) struct WatchedAlarm {
    alarm: JobAlarm,
    is_set_anew: bool,
    /// When the scheduler last dealt with an alarm whose activation was lost.
    at_work: Instant,
    was_silence_logged: bool,
    were_losses_logged: bool,
}

/// Wakes the jobs of a scheduler up every second, for as long as they live.
#[derive(Clone)]
pub(crate) struct JobAlarm {
    scheduler: JobScheduler,
    id: Uuid,
}

impl WatchedAlarm {
    /// Expects the alarm from now on.
    pub(crate) fn new(alarm: JobAlarm) -> Self {
        Self {
            alarm,
            is_set_anew: false,
            at_work: Instant::now(),
            was_silence_logged: false,
            were_losses_logged: false,
        }
    }

    /// Looks whether the alarm comes, and wakes jobs up if it does not or if the nodes' time has jumped.
    pub(super) async fn look(&mut self, jobs: &Jobs, has_time_jumped: bool) {
        let (set_back, silence) = (jobs.set_back_by(), jobs.silence());
        if set_back >= Duration::from_secs(1) {
            tracing::warn!(target: crate::TARGET, by = ?set_back, "the clock was set back");
        }
        let is_late = silence > LONGEST_SILENCE;
        let is_lost = is_late && self.is_set_anew && self.alarm.was_dealt_with().await;
        self.is_set_anew = is_late || set_back > Duration::ZERO;
        if self.is_set_anew {
            self.alarm.set_anew().await;
        }
        if (has_time_jumped || is_lost || set_back > Duration::ZERO) && !self.alarm.is_shut_down() {
            jobs.wake();
        }
        if is_lost {
            self.at_work = Instant::now();
        }
        if is_lost && !std::mem::replace(&mut self.were_losses_logged, true) {
            tracing::warn!(
                target: crate::TARGET, ?silence,
                "tokio-cron-scheduler loses activations, perhaps also of the application's own jobs: \
                 is its channel too small for them, or does one of them block?"
            );
        }
        let is_silent = silence.min(self.at_work.elapsed()) > LOGGED_SILENCE;
        if is_silent && !self.was_silence_logged {
            tracing::error!(
                target: crate::TARGET, ?silence,
                "tokio-cron-scheduler does not wake jobs up, and no tick is started: was it shut down?"
            );
        }
        self.was_silence_logged = is_silent;
    }
}

impl JobAlarm {
    /// Adds the alarm to `scheduler`.
    ///
    /// tokio-cron-scheduler keeps its jobs after its shutdown, so it gets a weak reference: with a strong one, the lock
    /// client would not end either.
    pub(crate) async fn set(
        scheduler: &JobScheduler,
        jobs: &Arc<Jobs>,
    ) -> Result<Self, JobSchedulerError> {
        let jobs = Arc::downgrade(jobs);
        let job = Job::new_async(EVERY_SECOND, move |id, scheduler| {
            let jobs = Weak::clone(&jobs);
            Box::pin(async move {
                if let Some(jobs) = jobs.upgrade() {
                    jobs.alarm_came();
                } else {
                    Self { scheduler, id }.store(None).await;
                }
            })
        })?;
        let id = scheduler.add(job).await?;
        let scheduler = scheduler.clone();
        Ok(Self { scheduler, id })
    }

    /// Makes the alarm come at the scheduler's next check, within half a second, and every second from then on.
    async fn set_anew(&self) {
        self.store(Some(LONG_AGO)).await;
    }

    /// Returns whether the scheduler has dealt with the alarm since the last call of [`set_anew`](Self::set_anew).
    ///
    /// The scheduler stores when the alarm is due next before it knows whether the activation arrives, so it does that
    /// also while activations are lost.
    /// A scheduler that never started stores nothing, and one that was shut down nothing any more.
    async fn was_dealt_with(&self) -> bool {
        let context = self.scheduler.context();
        let mut store = context.metadata_storage.write().await;
        let stored = store.get(self.id).await.ok().flatten();
        let next = stored.and_then(|alarm| alarm.next_tick_utc());
        next.is_some_and(|next| next != LONG_AGO)
    }

    /// Returns whether the application has shut the scheduler down.
    fn is_shut_down(&self) -> bool {
        // A shutdown keeps it locked until the application's handler has ended.
        let scheduler = self.scheduler.scheduler.try_read();
        scheduler.map_or(true, |scheduler| scheduler.shutdown.load(Ordering::Relaxed))
    }

    /// Stores when the alarm is due next; with `None`, the scheduler forgets the alarm.
    async fn store(&self, next: Option<DateTime<Utc>>) {
        let context = self.scheduler.context();
        let mut store = context.metadata_storage.write().await;
        if let Err(error) = store.set_next_and_last_tick(self.id, next, None).await {
            tracing::warn!(target: crate::TARGET, error = error.to_string(), "tokio-cron-scheduler does not store when to wake jobs up");
        }
    }
}

const EVERY_SECOND: &str = "* * * * * *";

/// The scheduler compares the machine's clock with it, and takes an instant of zero for none.
const LONG_AGO: DateTime<Utc> = DateTime::from_timestamp(1, 0).expect("in range");

/// The alarm comes a second and a half after the last at the latest, unless the machine is busy.
const LONGEST_SILENCE: Duration = Duration::from_secs(3);

/// The length of a silence of the alarm that is logged as an error.
const LOGGED_SILENCE: Duration = Duration::from_secs(10);
