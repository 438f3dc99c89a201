//! The one job that tokio-cron-scheduler has of ours.
//!
//! The scheduler calls a job under a lock that a panic would poison for good, so nothing happens in the call; and it
//! puts no bound on the futures it gets, so these end soon, and what they start are tasks of ours.

use std::sync::{Arc, Weak, atomic::Ordering};

use chrono::{DateTime, Utc};
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use uuid::Uuid;

use super::jobs::Jobs;

/// Wakes the jobs of a scheduler up every second, for as long as they live.
#[derive(Clone)]
pub(crate) struct JobAlarm {
    scheduler: JobScheduler,
    id: Uuid,
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
    pub(crate) async fn set_anew(&self) {
        self.store(Some(LONG_AGO)).await;
    }

    /// Returns whether the scheduler has dealt with the alarm since the last call of [`set_anew`](Self::set_anew).
    ///
    /// The scheduler stores when the alarm is due next before it knows whether the activation arrives, so it does that
    /// also while activations are lost.
    /// A scheduler that never started stores nothing, and one that was shut down nothing any more.
    pub(crate) async fn was_dealt_with(&self) -> bool {
        let context = self.scheduler.context();
        let mut store = context.metadata_storage.write().await;
        let stored = store.get(self.id).await.ok().flatten();
        let next = stored.and_then(|alarm| alarm.next_tick_utc());
        next.is_some_and(|next| next != LONG_AGO)
    }

    /// Returns whether the application has shut the scheduler down.
    pub(crate) fn is_shut_down(&self) -> bool {
        // A shutdown keeps it locked until the application's handler has ended.
        let scheduler = self.scheduler.scheduler.try_read();
        scheduler.map_or(true, |scheduler| scheduler.shutdown.load(Ordering::Relaxed))
    }

    /// Stores when the alarm is due next; with `None`, the scheduler forgets the alarm.
    async fn store(&self, next: Option<DateTime<Utc>>) {
        let context = self.scheduler.context();
        let mut store = context.metadata_storage.write().await;
        if let Err(error) = store.set_next_and_last_tick(self.id, next, None).await {
            tracing::warn!(target: crate::TARGET, %error, "tokio-cron-scheduler does not store when to wake jobs up");
        }
    }
}

const EVERY_SECOND: &str = "* * * * * *";

/// The scheduler compares the machine's clock with it, and takes an instant of zero for none.
const LONG_AGO: DateTime<Utc> = DateTime::from_timestamp(1, 0).expect("in range");
