//! The jobs, as one writes them.

use std::{convert::Infallible, time::Duration};

use redlock_cron::{Run, SingletonJob, chrono_tz};
use tokio::time::sleep;

use crate::line::Line;

/// Due every second, and over at once: a lock on its name is free again before others come to the tick.
pub(crate) const QUICK: &str = "quick";
/// Due every second, and longer than that: ticks that come in a run are skipped.
pub(crate) const REPORT: &str = "report";
/// Due at every third second since the epoch.
pub(crate) const SWEEP: &str = "sweep";

pub(crate) const ALL: [&str; 3] = [QUICK, REPORT, SWEEP];

pub(crate) const EVERY_SECOND: &str = "* * * * * *";
pub(crate) const QUICK_WORK: Duration = Duration::from_millis(5);
const REPORT_WORK: Duration = Duration::from_millis(1_700);
const SWEEP_WORK: Duration = Duration::from_millis(300);
const INTERVAL: Duration = Duration::from_secs(3);

/// So short that the story is: a replica that is gone keeps a job from the others for so long.
const LEASE: Duration = Duration::from_millis(1_500);

pub(crate) fn all() -> [SingletonJob; 3] {
    [
        SingletonJob::cron(QUICK, EVERY_SECOND, chrono_tz::UTC, |run| {
            work(run, QUICK_WORK)
        }),
        SingletonJob::cron(REPORT, EVERY_SECOND, chrono_tz::UTC, |run| {
            work(run, REPORT_WORK)
        }),
        SingletonJob::every(SWEEP, INTERVAL, |run| work(run, SWEEP_WORK)),
    ]
    .map(|job| job.ttl(LEASE))
}

/// Does what the job is there for, if it is let.
async fn work(run: Run, time: Duration) -> Result<(), Infallible> {
    let (job, tick) = (run.name().to_owned(), run.tick());
    Line::Began { job, tick }.say();
    sleep(time).await;
    // Dropped before this if the lease is lost.
    let (job, tick) = (run.name().to_owned(), run.tick());
    Line::Finished { job, tick }.say();
    Ok(())
}
