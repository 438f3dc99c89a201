use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use redlock_core::{Claim, RunRecord, Word};
use tokio::{select, time::Instant};
use tracing::{Instrument, info_span};

use crate::{
    Outcome, Run, TickReport,
    claim::{Ask, Refusal},
    clock::lag,
    due::Progress,
    identity::JobId,
    job::Work,
    replica::Replica,
    schedule::Schedule,
    terms::Terms,
};

/// One job on one replica: turns wake-ups into runs, and both into reports.
pub(crate) struct JobRunner {
    pub(crate) replica: Arc<Replica>,
    pub(crate) id: JobId,
    pub(crate) schedule: Schedule,
    pub(crate) terms: Terms,
    pub(crate) work: Work,
    pub(crate) progress: Mutex<Progress>,
}

/// How a run ended.
struct Ended {
    outcome: Outcome,
    detail: Option<String>,
}

impl JobRunner {
    /// Deals with a wake-up at `wake`; what it starts goes on in a task.
    pub(crate) fn wake(self: &Arc<Self>, wake: DateTime<Utc>) {
        // Nothing panics while the lock is held.
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let due = progress.due(&self.schedule, wake);
        drop(progress);
        let Some(due) = due else { return };
        for tick in due.passed_over {
            self.refused(
                tick,
                Refusal::new(Outcome::TooLate, "a newer tick was due at the same wake-up"),
            );
        }
        self.replica.tasks.spawn(Arc::clone(self).tick(due.tick));
    }

    /// The time of day, as this replica has it.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.replica.clock.now()
    }

    /// When to wake up next, or `None` if there is nothing more to wake up for.
    pub(crate) fn next_after(&self, wake: DateTime<Utc>) -> Option<DateTime<Utc>> {
        if self.replica.tasks.is_draining() {
            None
        } else {
            self.schedule.next_after(wake)
        }
    }

    /// Claims the tick, runs the job if it is ours, and reports.
    async fn tick(self: Arc<Self>, tick: DateTime<Utc>) {
        let tasks = &self.replica.tasks;
        let claim = select! {
            biased;
            () = tasks.draining() => Err(Refusal::draining()),
            claim = self.claim(tick) => claim,
        };
        let claim = match claim {
            Ok(claim) => claim,
            Err(refusal) => return self.refused(tick, refusal),
        };
        let Some(in_flight) = tasks.start(self.id.name(), tick) else {
            drop(claim);
            return self.refused(tick, Refusal::draining());
        };
        let late = lag(tick, self.replica.clock.now());
        let started = Instant::now();
        let Ended { outcome, detail } = self.run(&claim, tick, late).await;
        match outcome {
            Outcome::Aborted => in_flight.dropped(),
            _ => drop(in_flight),
        }
        let took = started.elapsed();
        self.report(tick, outcome, late, Some(took), detail);
        if let Some(outcome) = Word::new(outcome.as_str())
            && let Err(error) = claim.finish(outcome, took).await
        {
            // The run is over, and its lease ends by itself.
            tracing::debug!(job = &**self.id.name(), %tick, %error, "release");
        }
    }

    async fn claim(&self, tick: DateTime<Utc>) -> Result<Claim, Refusal> {
        loop {
            let ask = Ask {
                job: self.id.job_key(),
                lock: self.id.job_key(),
                tick,
                early: self.terms.early,
                start_within: self.terms.start_within,
                ttl: self.terms.ttl,
                wait: SHORT_WAIT,
                fingerprint: 0,
            };
            match self.replica.claims.claim(ask).await {
                Err(Refusal {
                    opens_in: Some(left),
                    ..
                }) if left <= LONGEST_AHEAD => tokio::time::sleep(left).await,
                decided => return decided,
            }
        }
    }

    /// Runs the job for as long as its lease is valid and it is not told to stop.
    async fn run(&self, claim: &Claim, tick: DateTime<Utc>, late: Duration) -> Ended {
        let name = Arc::clone(self.id.name());
        let span = info_span!("run", job = &*name, %tick);
        let run = Run::new(name, tick, late, claim.lease().clone());
        // Called inside the future, so that a panic of the call itself is caught as well.
        let work = async { (self.work)(run).await }.instrument(span);
        let guarded = async {
            select! {
                biased;
                () = self.replica.tasks.dropping() => None,
                ended = claim.run(work) => Some(ended),
            }
        };
        // The job's state is dropped with its future, or is the job's own to keep whole.
        match AssertUnwindSafe(guarded).catch_unwind().await {
            Ok(Some(Ok(Ok(())))) => Ended {
                outcome: Outcome::Ok,
                detail: None,
            },
            Ok(Some(Ok(Err(error)))) => Ended::new(Outcome::Failed, chain(&*error)),
            Ok(Some(Err(lost))) => Ended::new(Outcome::Lost, lost.to_string()),
            Ok(None) => Ended::new(Outcome::Aborted, "the scheduler ended before the run did"),
            Err(panic) => Ended::new(Outcome::Panicked, message(&*panic)),
        }
    }

    fn refused(&self, tick: DateTime<Utc>, refusal: Refusal) {
        let late = lag(tick, self.replica.clock.now());
        let claimed = |run: RunRecord| format!("claimed by {}", run.replica);
        let detail = refusal.detail.or_else(|| refusal.run.map(claimed));
        self.report(tick, refusal.outcome, late, None, detail);
    }

    fn report(
        &self,
        tick: DateTime<Utc>,
        outcome: Outcome,
        lag: Duration,
        took: Option<Duration>,
        detail: Option<String>,
    ) {
        let job = Arc::clone(self.id.name());
        self.replica.observer.tell(&TickReport {
            job,
            tick,
            outcome,
            lag,
            took,
            detail,
        });
    }
}

impl Ended {
    fn new(outcome: Outcome, detail: impl Into<String>) -> Self {
        Self {
            outcome,
            detail: Some(detail.into()),
        }
    }
}

/// How long a claim waits for a run that goes on.
///
/// Long enough to settle among replicas that ask at once, and short enough that a tick does not queue
/// up behind a run that overruns.
const SHORT_WAIT: Duration = Duration::from_secs(1);

/// A replica whose clock is ahead by no more than this waits for the nodes' clocks.
const LONGEST_AHEAD: Duration = Duration::from_secs(60);

/// An error and its sources, in a line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let errors = std::iter::successors(Some(error), |error| error.source());
    errors
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// What a panic said, if it said it in words.
fn message(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    words.unwrap_or("the panic has no message").to_owned()
}
