//! One run: until it ends, is told to stop, or loses its lease.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use redlock_core::{LossReason, Note, Tick};
use tokio::{
    select,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info_span};

use super::{context::JobContext, random_up_to};
use crate::{
    BoxError, OnLost, Outcome, Overlap, Run, TickReport, Trigger,
    clock::{lag, to_instant, to_tick},
    job::series::{CANCELS, MANUAL, REQUESTED, REQUESTS, STOPS},
    record::is_unstarted,
    replica::{STOP_GRACE, WonClaim, finish_noted},
};

/// A run that may start.
pub(crate) struct Start {
    pub(crate) won: WonClaim,
    pub(crate) tick: DateTime<Utc>,
    pub(crate) trigger: Trigger,
    pub(crate) attempt: u32,
}

/// How a run ended, with the details.
type RunEnd = (Outcome, Option<String>);

/// A run that goes on: the signal for it to stop, its reason, and the number of its tries so far.
struct Execution<'a> {
    job: &'a JobContext,
    start: &'a Start,
    stop: CancellationToken,
    why: OnceLock<Outcome>,
    /// The words of the operator that asked for its end.
    note: OnceLock<String>,
    tries: AtomicU32,
}

impl Start {
    /// Makes the start of the first run of a tick or request.
    pub(crate) fn first(won: WonClaim, tick: DateTime<Utc>, trigger: Trigger) -> Self {
        Self {
            won,
            tick,
            trigger,
            attempt: 1,
        }
    }

    /// Runs the tick that was claimed, unless a shutdown has begun, and reports.
    pub(crate) async fn run(self, job: &JobContext) -> TickReport {
        let (tick, trigger, attempt) = (self.tick, self.trigger, self.attempt);
        let measured = self.won.measured;
        // The end of the job waits for the release as well.
        let _run = job.ending.run();
        let tasks = &job.replica.tasks;
        let Some(in_flight) = tasks.start(job.id.name(), tick, trigger, &job.ending) else {
            let refusal = job.ended();
            let_go(job, self.won, refusal.outcome, Duration::ZERO, None).await;
            return job.refused(tick, trigger, refusal);
        };
        let late = lag(tick, job.replica.clock.now());
        let started = Instant::now();
        let execution = Execution {
            job,
            start: &self,
            stop: CancellationToken::new(),
            why: OnceLock::new(),
            note: OnceLock::new(),
            tries: AtomicU32::new(0),
        };
        let (outcome, detail) = execution.run(late).await;
        let (tries, note) = (execution.tries.into_inner(), execution.note.into_inner());
        match outcome {
            Outcome::Aborted => in_flight.dropped(),
            _ => drop(in_flight),
        }
        let took = started.elapsed();
        let note = match outcome {
            Outcome::Failed if job.settings.remember_errors => detail.clone(),
            _ => note,
        };
        let report = job.report(TickReport {
            job: Arc::clone(job.id.name()),
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
        let_go(job, self.won, outcome, took, note.as_deref()).await;
        #[cfg(feature = "test-util")]
        job.replica.observer.over(&report);
        report
    }
}

/// Records the outcome of a run, and releases its claim, and its slot if it has one.
async fn let_go(
    job: &JobContext,
    won: WonClaim,
    outcome: Outcome,
    took: Duration,
    note: Option<&str>,
) {
    let claim = finish_noted(job.id.name(), won.claim, outcome.as_str(), took, note);
    match won.slot {
        // The nodes report a failure, and the slot's time to live ends it.
        Some(slot) => drop(tokio::join!(claim, slot.release())),
        None => claim.await,
    }
}

impl Execution<'_> {
    /// Runs the job for as long as its lease is valid and it is not told to stop.
    async fn run(&self, lag: Duration) -> RunEnd {
        let start = self.start;
        let (name, tick) = (Arc::clone(self.job.id.name()), start.tick);
        let lease = start.won.claim.lease();
        let span = info_span!(
            target: crate::TARGET,
            "redlock.run",
            job = &*name,
            tick = tick.to_string(),
            trigger = ?start.trigger,
            attempt = start.attempt,
            token = %lease.token(),
            replica = &*self.job.replica.claims.replica,
        );
        let run = Run {
            name,
            tick,
            zone: self.job.schedule.zone(),
            local_date: self.job.schedule.day_of(tick),
            trigger: start.trigger,
            attempt: start.attempt,
            try_number: 1,
            lag,
            lease: lease.clone(),
            stop: self.stop.clone(),
        };
        span.in_scope(|| self.job.replica.observer.started(&run));
        // Called inside the future, so that a panic of the call itself is caught as well.
        let work = async { self.work(run).await }.instrument(span);
        let course = async {
            select! {
                biased;
                () = self.job.ending.dropping.cancelled() => dropped(Outcome::Aborted),
                reason = self.lost() => {
                    (Outcome::Lost, Some(format!("its lease is over: {reason}")))
                }
                outcome = self.stopped() => dropped(outcome),
                done = work => self.ended(done),
            }
        };
        // The job's state is dropped with its future, or is the job's own to keep whole.
        let ended = AssertUnwindSafe(course).catch_unwind().await;
        ended.unwrap_or_else(|panic| (Outcome::Panicked, Some(message(&*panic))))
    }

    /// Calls the job, and again as long as it fails, may be tried again, is not told to stop, and its job goes on.
    async fn work(&self, run: Run) -> Result<(), BoxError> {
        for number in 1.. {
            self.tries.store(number, Ordering::Relaxed);
            let run_of_try = Run {
                try_number: number,
                ..run.clone()
            };
            let Err(error) = (self.job.work)(run_of_try).await else {
                break;
            };
            let Some(pause) = self.job.settings.tries.pause_after(number) else {
                return Err(error);
            };
            let pause = pause / 2 + random_up_to(pause / 2);
            tracing::warn!(
                target: crate::TARGET,
                job = run.name(),
                tick = run.tick.to_string(),
                tries = number,
                error = chain(&*error),
                ?pause,
                "it failed, and is tried again"
            );
            select! {
                biased;
                () = run.stop.cancelled() => return Err(error),
                () = self.job.ending.leaving.cancelled() => {
                    if self.job.settings.max_attempts() > 1 {
                        // It was cut short, so that another replica may go on with it.
                        self.signal_stop(Outcome::Aborted);
                    }
                    return Err(error);
                }
                () = sleep(pause) => {}
            }
        }
        Ok(())
    }

    /// Resolves when the run must be dropped because its lease is lost.
    async fn lost(&self) -> LossReason {
        let reason = self.start.won.lost().await;
        match self.job.settings.on_lost {
            OnLost::Abort => reason,
            OnLost::Signal => {
                self.signal_stop(Outcome::Lost);
                std::future::pending().await
            }
        }
    }

    /// Resolves when the run must be dropped though its lease is held, a grace after it was told to stop.
    async fn stopped(&self) -> Outcome {
        let too_long = async {
            match self.job.settings.max_runtime {
                Some(limit) => sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let outcome = select! {
            () = self.job.ending.stopping.cancelled() => Outcome::Aborted,
            () = too_long => Outcome::TimedOut,
            () = self.cancelled() => Outcome::Cancelled,
            () = self.stopped_by_operator() => Outcome::Cancelled,
        };
        self.signal_stop(outcome);
        sleep(STOP_GRACE).await;
        outcome
    }

    /// Resolves when a later tick, or a request for a run, asks for the end of this tick's run.
    async fn cancelled(&self) {
        if self.job.settings.overlap != Overlap::CancelOther {
            return std::future::pending().await;
        }
        let after = match self.start.trigger {
            // Those asked for before were not meant for it, because it begins when no tick waits.
            Trigger::Backfill => to_tick(self.job.nodes_now()),
            _ => to_tick(self.start.tick),
        };
        loop {
            sleep((self.job.settings.ttl / 3).min(LONGEST_LOOK)).await;
            let asked = self.job.read(CANCELS).await;
            if let Some(asked) = asked.and_then(|asked| asked.watermark)
                && Some(asked) > after
                && self.is_waited_for(asked).await
            {
                return;
            }
        }
    }

    /// Resolves when an operator asks for the end of the runs that go on.
    async fn stopped_by_operator(&self) {
        let began = to_tick(self.job.nodes_now());
        loop {
            sleep(STOP_LOOK).await;
            let asked = self.job.read(STOPS).await;
            let asked = asked.and_then(|asked| asked.runs.into_iter().find(|it| !is_unstarted(it)));
            if let Some(asked) = asked.filter(|asked| Some(asked.tick) > began) {
                let operator = asked.note.as_ref().map_or("an operator", Note::as_str);
                let _ = self.note.set(format!("stopped by {operator}"));
                return;
            }
        }
    }

    /// Returns whether the tick or request that asked for the end of a run at the moment `asked` may still wait.
    ///
    /// The run may have begun after that tick or request had waited long enough, or had its own run.
    async fn is_waited_for(&self, asked: Tick) -> bool {
        let asked_at = to_instant(asked);
        // The moment is one of the nodes' clocks, however far this replica's is off.
        let ahead = self.job.replica.claims.ahead().await.unwrap_or_default();
        let longest = self.job.settings.start_within.saturating_add(ASKING);
        if lag(asked_at, self.job.now() - ahead) > longest {
            return false;
        }
        // The moment is a tick, and once that is claimed no run of an earlier one begins.
        if self.job.schedule.latest_at(asked_at) == Some(asked_at) {
            return true;
        }
        let Some(record) = self.job.record().await else {
            return false;
        };
        let mut requests = record.of(REQUESTS).runs.iter();
        let by_hand = match requests.any(|request| request.tick == asked) {
            true => record.of(REQUESTED),
            false => record.of(MANUAL),
        };
        by_hand.watermark < Some(asked)
    }

    fn signal_stop(&self, why: Outcome) {
        let _ = self.why.set(why);
        self.stop.cancel();
    }

    /// Returns how a run has ended that ended by itself.
    fn ended(&self, done: Result<(), BoxError>) -> RunEnd {
        let error = done.err().map(|error| chain(&*error));
        match self.why.get() {
            Some(why) => {
                let how = error.unwrap_or_else(|| "ok".into());
                (
                    *why,
                    Some(format!("it ended when it was told to stop: {how}")),
                )
            }
            None if error.is_some() => (Outcome::Failed, error),
            None => (Outcome::Ok, None),
        }
    }
}

/// Returns the end of a run that was dropped, with the reason.
fn dropped(outcome: Outcome) -> RunEnd {
    let why = match outcome {
        Outcome::TimedOut => "it took longer than max_runtime",
        Outcome::Cancelled => "a later tick was due, or an operator asked for its end",
        _ => "the scheduler ended before the run did, or its job was removed",
    };
    (outcome, Some(why.to_owned()))
}

/// Writes an error and its sources in a line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let errors = std::iter::successors(Some(error), |error| error.source());
    errors
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// Returns the message of a panic, if it is text.
fn message(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    words.unwrap_or("the panic has no message").to_owned()
}

/// How often a run looks whether an operator asks for its end: seldom, because every long run does.
const STOP_LOOK: Duration = Duration::from_secs(3);

/// How often a run looks for a later tick that asks for its end, at the least.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// How long it takes at most to ask for the end of a run, before the wait for it begins.
const ASKING: Duration = Duration::from_secs(5);
