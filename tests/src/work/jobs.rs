use std::{convert::Infallible, path::PathBuf, sync::Arc, time::Duration};

use redlock_cron::{
    Missed, Run, SingletonJob, SingletonScheduler, tokio_cron_scheduler::JobScheduler,
};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use super::{policies::Policies, written_run::WrittenRun};
use crate::{Connect, JobMoment, job_log::JobLogWriter};

/// Runs jobs as one of several replicas, until it is asked to end; reports how many runs had not finished then.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Jobs {
    /// The file for what it did.
    pub log: PathBuf,
    /// The nodes, and the time to live.
    pub connect: Connect,
    /// The replica's name.
    pub replica: String,
    /// Its jobs.
    pub jobs: Vec<Job>,
    /// How long runs may go on when it is asked to end.
    pub grace: Duration,
}

/// A job, or several of which only the names differ.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Job {
    /// Its name, which is followed by a number if there are several.
    pub name: String,
    /// How many there are.
    pub count: usize,
    /// It is due at each multiple of so much since the epoch, unless it has a pattern.
    pub every: Duration,
    /// The cron pattern by which it is due, and its zone.
    pub pattern: Option<(String, String)>,
    /// How long a run takes.
    pub work: Duration,
    /// How long after a tick replicas ask for it at the latest; by default, what the scheduler's default is.
    pub spread: Option<Duration>,
    /// The policy for ticks that no replica started.
    pub missed: MissedTicks,
    /// Its other policies.
    pub policies: Policies,
}

/// As [`Missed`].
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub enum MissedTicks {
    /// They are passed over.
    Skip,
    /// The newest is started.
    Latest,
    /// All are started.
    All,
}

impl Job {
    /// One job, with nothing else said.
    pub fn new(name: &str, every: Duration, work: Duration) -> Self {
        Self {
            name: name.to_owned(),
            count: 1,
            every,
            pattern: None,
            work,
            spread: None,
            missed: MissedTicks::Skip,
            policies: Policies::default(),
        }
    }

    /// The same, by a cron pattern in a zone.
    pub fn cron(name: &str, pattern: &str, zone: &str, work: Duration) -> Self {
        Self {
            pattern: Some((pattern.to_owned(), zone.to_owned())),
            ..Self::new(name, Duration::ZERO, work)
        }
    }

    fn describe(&self, name: String, log: Arc<JobLogWriter>) -> SingletonJob {
        let (time, policies) = (self.work, self.policies);
        let work = move |run: Run| {
            let run = WrittenRun::begin(Arc::clone(&log), run);
            async move {
                run.work(time, policies.stops_in).await;
                Ok::<_, Infallible>(())
            }
        };
        let missed = match self.missed {
            MissedTicks::Skip => Missed::Skip,
            MissedTicks::Latest => Missed::Latest,
            MissedTicks::All => Missed::All { max: 20 },
        };
        let job = match &self.pattern {
            Some((pattern, zone)) => SingletonJob::cron(name, pattern, zone.as_str(), work),
            None => SingletonJob::every(name, self.every, work),
        };
        let job = match self.spread {
            Some(spread) => job.spread(spread),
            None => job,
        };
        policies.apply(job.missed(missed))
    }
}

impl Jobs {
    pub(super) async fn run(self) -> usize {
        let (scheduler, log) = self.scheduler().await;
        let mut end = signal(SignalKind::terminate()).expect("there are signals");
        scheduler.start().await.expect("it starts");
        log.ready();
        end.recv().await;
        scheduler.shutdown(self.grace).await.unfinished().len()
    }

    /// With its jobs, but not started.
    pub(crate) async fn scheduler(&self) -> (SingletonScheduler, Arc<JobLogWriter>) {
        let log = Arc::new(JobLogWriter::open(&self.log, self.replica.clone()));
        let scheduler = JobScheduler::new().await;
        let reports = Arc::clone(&log);
        let scheduler = SingletonScheduler::builder(
            self.connect.client().await,
            scheduler.expect("it is made"),
        )
        .namespace("tests")
        .replica(&self.replica)
        .on_outcome(move |report| {
            let became = JobMoment::Became {
                outcome: report.outcome().to_string(),
                trigger: format!("{:?}", report.trigger()),
                attempt: report.attempt(),
                last: report.last_tick().timestamp(),
            };
            reports.write(report.job(), report.tick(), became);
        })
        .build()
        .expect("its settings are valid");
        for job in &self.jobs {
            for number in 0..job.count {
                let name = match job.count {
                    1 => job.name.clone(),
                    _ => format!("{}-{number}", job.name),
                };
                let job = job.describe(name, Arc::clone(&log));
                scheduler.add(job).await.expect("the job is valid");
            }
        }
        (scheduler, log)
    }
}
