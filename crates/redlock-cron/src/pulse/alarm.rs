//! The one job that tokio-cron-scheduler has of ours, and the watch over it.
//!
//! The scheduler calls a job under a lock that a panic would poison for good, so nothing happens in the call; and it
//! puts no bound on the futures it gets, so these end soon, and what they start are tasks of ours.
//!
//! The watch acts if the alarm does not come, or came by a wrong clock.
//!
//! tokio-cron-scheduler stores the instant at which the alarm is due next, and compares the machine's clock with it.
//! So a clock that was years ahead, and is set right, would silence all jobs for years.
//! A step forwards needs no care: what is due then is found at the next look, half a second later at most.
//!
//! The alarm's activation goes through a channel that drops the oldest when it is full, and an application with many jobs
//! of its own may fill it in every second.
//! tokio-cron-scheduler has done its part then, so the watch wakes jobs up in place of the alarm.
//! It does not in place of a scheduler that was shut down: an application does that to start nothing more.
//!
//! Ticks are due by the nodes' clocks, so they are also looked for when the time of those is another than expected.
//! A replica whose own clock is wrong uses the nodes' time, and logs a warning.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::{
    select,
    time::{Instant, sleep},
};
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use uuid::Uuid;

use super::jobs::Jobs;
use crate::{clock::LONGEST_AHEAD, replica::Replica};

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
            tracing::warn!(target: crate::TARGET, error = error.to_string(), "tokio-cron-scheduler does not store when to wake jobs up");
        }
    }
}

const EVERY_SECOND: &str = "* * * * * *";

/// The scheduler compares the machine's clock with it, and takes an instant of zero for none.
const LONG_AGO: DateTime<Utc> = DateTime::from_timestamp(1, 0).expect("in range");

/// Looks at the clock and for the alarm every second, until nothing may be started any more.
///
/// Without an alarm, it is what wakes jobs up.
pub(crate) async fn watch(alarm: Option<JobAlarm>, replica: Arc<Replica>, jobs: Weak<Jobs>) {
    let (mut told, mut told_of_losses, mut told_of_clock) = (false, false, false);
    let mut is_set_anew = false;
    // When the scheduler last dealt with an alarm whose activation was lost.
    let mut at_work = Instant::now();
    loop {
        select! {
            () = replica.tasks.draining.cancelled() => return,
            () = sleep(EVERY) => {}
        }
        replica.look_at_clocks().await;
        let Some(jobs) = jobs.upgrade() else { return };
        told_of_clock = tell_of_clock(&replica, told_of_clock);
        let was_set = replica.has_time_jumped();
        if was_set {
            jobs.clock_was_set();
        }
        jobs.look_at_nodes();
        let Some(alarm) = &alarm else {
            jobs.alarm_came();
            continue;
        };
        let (set_back, silence) = (jobs.set_back_by(), jobs.silence());
        if set_back >= Duration::from_secs(1) {
            tracing::warn!(target: crate::TARGET, by = ?set_back, "the clock was set back");
        }
        let is_late = silence > LONGEST_SILENCE;
        let is_lost = is_late && is_set_anew && alarm.was_dealt_with().await;
        is_set_anew = is_late || set_back > Duration::ZERO;
        if is_set_anew {
            alarm.set_anew().await;
        }
        if (was_set || is_lost || set_back > Duration::ZERO) && !alarm.is_shut_down() {
            jobs.wake();
        }
        if is_lost {
            at_work = Instant::now();
        }
        if is_lost && !std::mem::replace(&mut told_of_losses, true) {
            tracing::warn!(
                target: crate::TARGET, ?silence,
                "tokio-cron-scheduler loses activations, perhaps also of the application's own jobs: \
                 is its channel too small for them, or does one of them block?"
            );
        }
        let is_silent = silence.min(at_work.elapsed()) > TOLD_SILENCE;
        if is_silent && !told {
            tracing::error!(
                target: crate::TARGET, ?silence,
                "tokio-cron-scheduler does not wake jobs up, and no tick is started: was it shut down?"
            );
        }
        told = is_silent;
    }
}

/// Warns once if this replica's clock is far off; returns whether it is.
fn tell_of_clock(replica: &Replica, was_told: bool) -> bool {
    let Some(ahead) = replica.ahead() else {
        return was_told;
    };
    let is_wrong = ahead.abs().to_std().is_ok_and(|by| by > LONGEST_AHEAD);
    if is_wrong && !was_told {
        let offset_s = ahead.num_seconds();
        tracing::warn!(
            target: crate::TARGET, offset_s,
            "the wall clock of this machine is wrong: set it right; until then, jobs here are started by the nodes' clocks"
        );
    }
    is_wrong
}

/// The longest delay of a tick that comes right after a step back of the clock.
const EVERY: Duration = Duration::from_secs(1);

/// The alarm comes a second and a half after the last at the latest, unless the machine is busy.
const LONGEST_SILENCE: Duration = Duration::from_secs(3);

/// The length of a silence of the alarm that is logged as an error.
const TOLD_SILENCE: Duration = Duration::from_secs(10);
