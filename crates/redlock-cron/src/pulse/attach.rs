//! How a job hangs on tokio-cron-scheduler.
//!
//! The scheduler is used as an alarm clock: it wakes a job up, and the job's own schedule says which
//! tick that is.
//!
//! It is told that the job is due every second, and after each wake-up the true next tick is put into
//! its store, over the one it has computed.
//! So its own reading of patterns and zones plays no part.
//! Whatever goes wrong on the way, be it that the new tick cannot be stored or that a wake-up is lost
//! in a channel that is too small, leaves a job that is woken up a second later, and a tick that is
//! found then.
//!
//! The scheduler calls a job under a lock that a panic would poison for good, so nothing happens in
//! the call; and it puts no bound on the futures it gets, so these end soon, and runs are tasks of
//! ours.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use uuid::Uuid;

use crate::tick::JobRunner;

/// Adds the job to the scheduler, which wakes it up for as long as it lives.
///
/// The scheduler never lets go of the jobs it has when it is shut down, so it gets a weak reference:
/// with a strong one, the lock client would not end either.
pub(crate) async fn attach(
    scheduler: &JobScheduler,
    runner: &Arc<JobRunner>,
) -> Result<Uuid, JobSchedulerError> {
    let next = runner.next_wake(runner.nodes_now());
    let runner = Arc::downgrade(runner);
    let job = Job::new_async(EVERY_SECOND, move |id, scheduler| {
        let runner = Weak::clone(&runner);
        Box::pin(async move { wake(&scheduler, id, &runner).await })
    })?;
    let id = scheduler.add(job).await?;
    if !has_code(scheduler, id).await {
        // The error that matters is the one below.
        let _ = scheduler.remove(&id).await;
        return Err(JobSchedulerError::CantAdd);
    }
    set_next(scheduler, id, next, Unless::Never).await;
    Ok(id)
}

/// Whether each of the scheduler's channels has `places`.
///
/// It does not say how long they are, but all are of one length, and one of them is for the removal of
/// notifications, of which there are none here: it is filled with removals of nothing.
pub(crate) fn has_places(scheduler: &JobScheduler, places: usize) -> bool {
    let channel = scheduler.context().notify_deleted_tx.clone();
    let mut end = channel.subscribe();
    for _ in 0..places {
        if channel.send(Ok((Uuid::nil(), false, None))).is_err() {
            return false;
        }
    }
    end.try_recv().is_ok()
}

/// Whether the scheduler knows what to run.
///
/// It answers an addition before that, through a channel of its own, and when it falls behind there it
/// stops listening for good: every later job would be added and never run.
/// So each addition is waited for, which also keeps it from falling behind.
async fn has_code(scheduler: &JobScheduler, id: Uuid) -> bool {
    let context = scheduler.context();
    for _ in 0..CODE_ATTEMPTS {
        if let Ok(Some(_)) = context.job_code.write().await.get(id).await {
            return true;
        }
        tokio::time::sleep(CODE_PAUSE).await;
    }
    false
}

async fn wake(scheduler: &JobScheduler, id: Uuid, runner: &Weak<JobRunner>) {
    let woken = runner.upgrade().map(|runner| {
        let wake = runner.nodes_now();
        runner.wake();
        runner.say_if_it_ended();
        wake
    });
    for _ in 0..REARM_ATTEMPTS {
        // From the wake-up on, not from now: a tick that came up in the meantime must not be skipped.
        // Unless the clock was set back in the meantime.
        let next = runner
            .upgrade()
            .zip(woken)
            .and_then(|(runner, wake)| runner.next_wake(wake.min(runner.nodes_now())));
        if set_next(scheduler, id, next, Unless::Unwritten).await {
            return;
        }
        tokio::time::sleep(REARM_PAUSE).await;
    }
}

/// Does what a wake-up does, because the clock was set: what was stored may be due too late, or in years.
pub(crate) async fn wake_anew(scheduler: &JobScheduler, id: Uuid, runner: &Arc<JobRunner>) {
    let now = runner.nodes_now();
    runner.wake();
    set_next(scheduler, id, runner.next_wake(now), Unless::Never).await;
}

/// When the next tick must not be set.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Unless {
    Never,
    /// The scheduler has not written its own since we did last, and would overwrite ours.
    Unwritten,
}

/// Tells the scheduler when to wake the job up next, or to forget it; returns whether that is
/// settled.
async fn set_next(
    scheduler: &JobScheduler,
    id: Uuid,
    next: Option<DateTime<Utc>>,
    unless: Unless,
) -> bool {
    let context = scheduler.context();
    let mut store = context.metadata_storage.write().await;
    if unless == Unless::Unwritten {
        match store.get(id).await {
            // The scheduler always writes a last tick, and we never do.
            Ok(Some(job)) if job.last_tick.is_some() => {}
            Ok(Some(_)) => return false,
            Ok(None) | Err(_) => return true,
        }
    }
    if let Err(error) = store.set_next_and_last_tick(id, next, None).await {
        tracing::warn!(target: crate::TARGET, %error, "next tick not stored; the job is woken up every second");
    }
    true
}

const EVERY_SECOND: &str = "* * * * * *";

/// For how long the scheduler's own write is waited for: up to its next look at the store.
const REARM_ATTEMPTS: u32 = 50;
const REARM_PAUSE: Duration = Duration::from_millis(10);

/// For how long the scheduler's other channel is waited for: five seconds.
const CODE_ATTEMPTS: u32 = 1_000;
const CODE_PAUSE: Duration = Duration::from_millis(5);
