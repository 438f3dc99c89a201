//! One replica.

use std::time::Duration;

use redlock_core::{Config, Redlock};
use redlock_cron::{SingletonScheduler, tokio_cron_scheduler::JobScheduler};

use stage::{BoxError, asked_to_end};

use crate::{NAMESPACE, careless, jobs, line::Line};

/// Whether ticks are claimed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Claims {
    Yes,
    /// There is only a lock on the job's name, as one writes it first.
    No,
}

/// Runs the jobs, with other replicas, until it is asked to end.
pub(crate) async fn run(name: &str, claims: Claims, bless: bool) -> Result<(), BoxError> {
    let mut config = Config::from_env()?;
    config.namespace.get_or_insert_with(|| NAMESPACE.to_owned());
    let redlock = Redlock::builder().config(config).build().await?;
    if bless {
        redlock.dangerous_bless().await;
    }
    let scheduler = JobScheduler::new().await?;
    if claims == Claims::No {
        return careless::run(redlock, scheduler).await;
    }
    let scheduler = SingletonScheduler::builder(redlock.clone(), scheduler)
        .namespace(NAMESPACE)
        .replica(name)
        .on_outcome(|report| {
            let became = Line::Became {
                job: report.job().to_owned(),
                tick: report.tick(),
                outcome: report.outcome().to_string(),
            };
            became.say();
        })
        .build()?;
    for job in jobs::all() {
        scheduler.add(job).await?;
    }
    scheduler.start().await?;
    Line::Ready.say();
    asked_to_end().await;
    let report = scheduler.shutdown(GRACE).await;
    redlock.close().await;
    let unfinished = report.unfinished().len();
    Line::Ended { unfinished }.say();
    Ok(())
}

/// How long runs may go on when the replica is to end: longer than any takes.
const GRACE: Duration = Duration::from_secs(5);
