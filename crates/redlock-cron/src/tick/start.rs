//! The start of a tick that was claimed here, or its refusal: from the claim to the report.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use redlock_core::{Claim, RunRecord};
use tokio::time::Instant;

use super::{
    execution::{Ended, Start},
    retry::Unclaimed,
    runner::JobRunner,
};
use crate::{
    Outcome, TickReport, Trigger,
    clock::lag,
    replica::{Refusal, Won, finish},
};

impl JobRunner {
    /// Runs the tick that was claimed, and again if the run was cut short and may be started again.
    pub(crate) async fn start_all(&self, mut start: Start) {
        loop {
            let tick = start.tick;
            if self.start(start).await.outcome != Outcome::Lost || self.settings.max_attempts() == 1
            {
                return;
            }
            let pause = self.pause_after(Duration::ZERO);
            let retry = self.retry(tick, pause, Unclaimed::Wait);
            match self.unless_draining(retry).await {
                Ok(next) => start = next,
                // What became of the tick here was reported.
                Err(refusal) => return self.say_if_given_up(tick, refusal),
            }
        }
    }

    /// Runs the tick that was claimed, unless a shutdown has begun, and reports.
    pub(crate) async fn start(&self, start: Start) -> TickReport {
        let (tick, trigger, attempt) = (start.tick, start.trigger, start.attempt);
        let measured = start.won.measured;
        // The end of the job waits for the release as well.
        let _run = self.ending.run();
        let tasks = &self.replica.tasks;
        let Some(in_flight) = tasks.start(self.id.name(), tick, trigger, &self.ending) else {
            let refusal = self.ended();
            self.let_go(start.won, refusal.outcome, Duration::ZERO)
                .await;
            return self.refused(tick, trigger, refusal);
        };
        let late = lag(tick, self.replica.clock.now());
        let started = Instant::now();
        let Ended {
            outcome,
            detail,
            tries,
        } = self.run(&start, late).await;
        match outcome {
            Outcome::Aborted => in_flight.dropped(),
            _ => drop(in_flight),
        }
        let took = started.elapsed();
        let report = self.report(TickReport {
            job: Arc::clone(self.id.name()),
            tick,
            more: None,
            trigger,
            attempt,
            tries,
            outcome,
            lag: late,
            took: Some(took),
            measured: Some(measured),
            detail,
        });
        self.let_go(start.won, outcome, took).await;
        #[cfg(feature = "test-util")]
        self.replica.observer.over(&report);
        report
    }

    /// Records the outcome of a run, and releases its claim, and its slot if it has one.
    async fn let_go(&self, won: Won, outcome: Outcome, took: Duration) {
        let claim = self.finish(won.claim, outcome.as_str(), took);
        match won.slot {
            // The nodes report a failure, and the slot's time to live ends it.
            Some(slot) => drop(tokio::join!(claim, slot.release())),
            None => claim.await,
        }
    }

    /// Records the outcome of a claim, and releases its lock.
    pub(crate) async fn finish(&self, claim: Claim, outcome: &str, took: Duration) {
        finish(&self.id, claim, outcome, took).await;
    }

    pub(crate) fn refused(
        &self,
        tick: DateTime<Utc>,
        trigger: Trigger,
        refusal: Refusal,
    ) -> TickReport {
        self.report_several(tick, None, trigger, refusal)
    }

    /// Reports why a tick is not started here; `more` is the last tick of several, and their number.
    pub(crate) fn report_several(
        &self,
        tick: DateTime<Utc>,
        more: Option<(DateTime<Utc>, u64)>,
        trigger: Trigger,
        refusal: Refusal,
    ) -> TickReport {
        let claimed = |run: RunRecord| format!("claimed by {}", run.replica);
        let detail = refusal.detail.or_else(|| refusal.run.map(claimed));
        let report = self.report(TickReport {
            job: Arc::clone(self.id.name()),
            tick,
            more,
            trigger,
            attempt: 1,
            tries: 0,
            outcome: refusal.outcome,
            lag: lag(tick, self.replica.clock.now()),
            took: None,
            measured: refusal.measured,
            detail,
        });
        #[cfg(feature = "test-util")]
        self.replica.observer.over(&report);
        report
    }

    pub(crate) fn report(&self, report: TickReport) -> TickReport {
        self.replica.observer.tell(&report);
        self.journal.note(&report);
        report
    }
}
