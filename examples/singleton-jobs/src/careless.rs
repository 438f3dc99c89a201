//! The job without a claim, as a first attempt: a lock on its name, around what each replica's scheduler starts.

use redlock_core::Redlock;
use redlock_cron::{
    chrono::{SubsecRound, Utc},
    tokio_cron_scheduler::{Job, JobScheduler},
};
use tokio::time::sleep;

use stage::{BoxError, asked_to_end};

use crate::{
    jobs::{EVERY_SECOND, QUICK, QUICK_WORK},
    line::Line,
};

/// Runs the quick job until it is asked to end.
pub(crate) async fn run(redlock: Redlock, mut scheduler: JobScheduler) -> Result<(), BoxError> {
    let lock = redlock.clone();
    let job = Job::new_async(EVERY_SECOND, move |_, _| {
        let redlock = lock.clone();
        Box::pin(async move {
            // The scheduler does not say which tick the wake-up is about.
            let (job, tick) = (QUICK.to_owned(), Utc::now().trunc_subsecs(0));
            let Ok(guard) = redlock.try_acquire(QUICK).await else {
                let outcome = "not_winner".to_owned();
                return Line::Became { job, tick, outcome }.say();
            };
            let began = Line::Began {
                job: job.clone(),
                tick,
            };
            began.say();
            sleep(QUICK_WORK).await;
            let outcome = "ok".to_owned();
            Line::Became { job, tick, outcome }.say();
            // A replica that comes a moment later gets the lock, and runs the tick again.
            drop(guard.release().await);
        })
    })?;
    scheduler.add(job).await?;
    scheduler.start().await?;
    Line::Ready.say();
    asked_to_end().await;
    scheduler.shutdown().await?;
    redlock.close().await;
    Line::Ended { unfinished: 0 }.say();
    Ok(())
}
