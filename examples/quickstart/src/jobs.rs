//! A job every second, on all replicas, that runs on one.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use redlock_cron::{
    Outcome, Run, SingletonJob, SingletonScheduler, chrono_tz, tokio_cron_scheduler::JobScheduler,
};

use stage::{BoxError, Story};

use crate::replica::Replica;

/// The schedulers of all replicas, and what they reported.
pub(crate) struct Jobs {
    schedulers: Vec<SingletonScheduler>,
    ticks: Ticks,
}

/// What became of each tick.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ticks(Arc<Mutex<Outcomes>>);

/// For each tick, by its second, what became of it on which replica.
type Outcomes = BTreeMap<i64, Vec<(usize, Outcome)>>;

pub(crate) async fn start(
    replicas: &[Replica],
    namespace: &str,
    story: &Story,
) -> Result<Jobs, BoxError> {
    let ticks = Ticks::default();
    let mut schedulers = Vec::new();
    for replica in replicas {
        let number = replica.number;
        let reported = ticks.clone();
        let scheduler = JobScheduler::new().await?;
        let scheduler = SingletonScheduler::builder(replica.redlock.clone(), scheduler)
            .namespace(namespace)
            .on_outcome(move |report| {
                reported.add(report.tick().timestamp(), number, report.outcome());
            })
            .build()?;
        let story = *story;
        let report = move |run: Run| async move {
            let tick = run.tick().format("%H:%M:%S");
            story.tell(format_args!(
                "the job of {tick} runs on replica {number} only"
            ));
            Ok::<_, Infallible>(())
        };
        scheduler
            .add(SingletonJob::cron(
                "report",
                "* * * * * *",
                chrono_tz::UTC,
                report,
            ))
            .await?;
        schedulers.push(scheduler);
    }
    for scheduler in &schedulers {
        scheduler.start().await?;
    }
    story.tell(format_args!(
        "each replica has the same job, due every second"
    ));
    Ok(Jobs { schedulers, ticks })
}

impl Jobs {
    /// Waits for a few ticks if the load was quick, then ends the job on every replica.
    pub(crate) async fn finish(self, story: &Story) -> Result<Ticks, BoxError> {
        while self.ticks.count() < FEWEST_TICKS {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for scheduler in &self.schedulers {
            let report = scheduler.shutdown(Duration::from_secs(2)).await;
            if let Some(run) = report.unfinished().first() {
                return Err(format!("the job of {} did not end", run.tick()).into());
            }
        }
        let (ticks, runs) = (self.ticks.count(), self.ticks.runs());
        story.tell(format_args!(
            "{ticks} ticks came on {} replicas, {runs} runs",
            self.schedulers.len()
        ));
        Ok(self.ticks)
    }
}

impl Ticks {
    fn add(&self, tick: i64, replica: usize, outcome: Outcome) {
        self.with(|ticks| ticks.entry(tick).or_default().push((replica, outcome)));
    }

    fn count(&self) -> usize {
        self.with(|ticks| {
            ticks
                .values()
                .filter(|outcomes| started(outcomes) > 0)
                .count()
        })
    }

    fn runs(&self) -> usize {
        self.with(|ticks| ticks.values().map(|outcomes| started(outcomes)).sum())
    }

    /// How many ticks there were and how many runs: one for each, or it says which tick was not.
    ///
    /// A tick that no replica came to in time does not count: before the shutdown, or because the
    /// machine stood still.
    pub(crate) fn check(&self) -> Result<(usize, usize), BoxError> {
        self.with(|ticks| {
            ticks.retain(|_, outcomes| {
                let came = |outcome| !matches!(outcome, Outcome::Draining | Outcome::TooLate);
                outcomes.iter().any(|(_, outcome)| came(*outcome))
            });
            let mut runs = 0;
            for (tick, outcomes) in &*ticks {
                let started = started(outcomes);
                if started != 1 {
                    return Err(format!("tick {tick} ran {started} times: {outcomes:?}").into());
                }
                runs += started;
            }
            Ok((ticks.len(), runs))
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut Outcomes) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How many of the replicas started the tick.
fn started(outcomes: &[(usize, Outcome)]) -> usize {
    outcomes
        .iter()
        .filter(|(_, outcome)| outcome.was_started())
        .count()
}

/// Fewer would not be much of a show.
const FEWEST_TICKS: usize = 4;
