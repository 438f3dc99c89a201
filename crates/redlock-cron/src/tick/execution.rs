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
use redlock_core::{LossReason, Tick};
use tokio::{select, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info_span};

use super::{random::up_to, runner::JobRunner};
use crate::{
    BoxError, OnLost, Outcome, Overlap, Run, Trigger,
    clock::{lag, to_instant, to_tick},
    replica::{STOP_GRACE, Won},
};

/// A run that may start.
pub(crate) struct Start {
    pub(crate) won: Won,
    pub(crate) tick: DateTime<Utc>,
    pub(crate) trigger: Trigger,
    pub(crate) attempt: u32,
}

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
    /// How often the job was called.
    pub(crate) tries: u32,
}

/// The signal for a run to stop, its reason, and the number of the run's tries so far.
#[derive(Default)]
struct Told {
    stop: CancellationToken,
    why: OnceLock<Outcome>,
    tries: AtomicU32,
}

impl JobRunner {
    /// Runs the job for as long as its lease is valid and it is not told to stop.
    pub(crate) async fn run(&self, start: &Start, lag: Duration) -> Ended {
        let (name, tick) = (Arc::clone(self.id.name()), start.tick);
        let told = Told::default();
        let lease = start.won.claim.lease();
        let span = info_span!(
            target: crate::TARGET,
            "redlock.run",
            job = &*name,
            %tick,
            trigger = ?start.trigger,
            attempt = start.attempt,
            token = %lease.token(),
            replica = &*self.replica.claims.replica,
        );
        let run = Run {
            name,
            tick,
            zone: self.schedule.zone(),
            local_date: self.schedule.day_of(tick),
            trigger: start.trigger,
            attempt: start.attempt,
            try_number: 1,
            lag,
            lease: lease.clone(),
            stop: told.stop.clone(),
        };
        span.in_scope(|| self.replica.observer.started(&run));
        // Called inside the future, so that a panic of the call itself is caught as well.
        let work = async { self.work(run, &told).await }.instrument(span);
        let course = async {
            select! {
                biased;
                () = self.ending.dropping() => Ended::by(Outcome::Aborted),
                reason = self.lost(&start.won, &told) => {
                    Ended::new(Outcome::Lost, format!("its lease is over: {reason}"))
                }
                outcome = self.stopped(tick, &told) => Ended::by(outcome),
                done = work => told.ended(done),
            }
        };
        // The job's state is dropped with its future, or is the job's own to keep whole.
        let ended = match AssertUnwindSafe(course).catch_unwind().await {
            Ok(ended) => ended,
            Err(panic) => Ended::new(Outcome::Panicked, message(&*panic)),
        };
        Ended {
            tries: told.tries.load(Ordering::Relaxed),
            ..ended
        }
    }

    /// Calls the job, and again as long as it fails, may be tried again, is not told to stop, and its job goes on.
    async fn work(&self, run: Run, told: &Told) -> Result<(), BoxError> {
        for number in 1.. {
            told.tries.store(number, Ordering::Relaxed);
            let run_of_try = Run {
                try_number: number,
                ..run.clone()
            };
            let Err(error) = (self.work)(run_of_try).await else {
                break;
            };
            let Some(pause) = self.settings.tries.pause_after(number) else {
                return Err(error);
            };
            let pause = pause / 2 + up_to(pause / 2);
            tracing::warn!(
                target: crate::TARGET,
                job = run.name(),
                tick = %run.tick,
                tries = number,
                error = chain(&*error),
                ?pause,
                "it failed, and is tried again"
            );
            select! {
                biased;
                () = run.stop.cancelled() => return Err(error),
                () = self.ending.leaving() => {
                    if self.settings.max_attempts() > 1 {
                        // It was cut short, so that another replica may go on with it.
                        told.stop(Outcome::Aborted);
                    }
                    return Err(error);
                }
                () = sleep(pause) => {}
            }
        }
        Ok(())
    }

    /// Resolves when the run must be dropped because its lease is lost.
    async fn lost(&self, won: &Won, told: &Told) -> LossReason {
        let reason = won.lost().await;
        match self.settings.on_lost {
            OnLost::Abort => reason,
            OnLost::Signal => {
                told.stop(Outcome::Lost);
                std::future::pending().await
            }
        }
    }

    /// Resolves when the run must be dropped though its lease is held, a grace after it was told to stop.
    async fn stopped(&self, tick: DateTime<Utc>, told: &Told) -> Outcome {
        let too_long = async {
            match self.settings.max_runtime {
                Some(limit) => sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let outcome = select! {
            () = self.ending.stopping() => Outcome::Aborted,
            () = too_long => Outcome::TimedOut,
            () = self.cancelled(tick) => Outcome::Cancelled,
        };
        told.stop(outcome);
        sleep(STOP_GRACE).await;
        outcome
    }

    /// Resolves when a later tick, or a request for a run, asks for the end of this tick's run.
    async fn cancelled(&self, tick: DateTime<Utc>) {
        if self.settings.overlap != Overlap::CancelOther {
            return std::future::pending().await;
        }
        loop {
            sleep((self.settings.ttl / 3).min(LONGEST_LOOK)).await;
            let asked = self.replica.claims.read(self.id.cancel_key()).await;
            if let Some(asked) = asked.and_then(|asked| asked.watermark)
                && Some(asked) > to_tick(tick)
                && self.is_waited_for(asked).await
            {
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
        let ahead = self.replica.claims.ahead().await.unwrap_or_default();
        let longest = self.settings.start_within.saturating_add(ASKING);
        if lag(asked_at, self.now() - ahead) > longest {
            return false;
        }
        // The moment is a tick, and once that is claimed no run of an earlier one begins.
        if self.schedule.latest_at(asked_at) == Some(asked_at) {
            return true;
        }
        let manual = self.replica.claims.read(self.id.manual_key()).await;
        manual.is_some_and(|manual| manual.watermark < Some(asked))
    }
}

impl Told {
    fn stop(&self, why: Outcome) {
        let _ = self.why.set(why);
        self.stop.cancel();
    }

    /// Returns how a run has ended that ended by itself.
    fn ended(&self, done: Result<(), BoxError>) -> Ended {
        let error = done.err().map(|error| chain(&*error));
        match self.why.get() {
            Some(why) => {
                let how = error.unwrap_or_else(|| "ok".into());
                Ended::new(*why, format!("it ended when it was told to stop: {how}"))
            }
            None => Ended {
                outcome: match error {
                    None => Outcome::Ok,
                    Some(_) => Outcome::Failed,
                },
                detail: error,
                tries: 0,
            },
        }
    }
}

impl Ended {
    /// Returns the end of a run that was dropped, with the reason.
    fn by(outcome: Outcome) -> Self {
        let why = match outcome {
            Outcome::TimedOut => "it took longer than max_runtime",
            Outcome::Cancelled => "a later tick was due",
            _ => "the scheduler ended before the run did, or its job was removed",
        };
        Self::new(outcome, why)
    }

    fn new(outcome: Outcome, detail: impl Into<String>) -> Self {
        Self {
            outcome,
            detail: Some(detail.into()),
            tries: 0,
        }
    }
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

/// How often a run looks for a later tick that asks for its end, at the least.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// How long it takes at most to ask for the end of a run, before the wait for it begins.
const ASKING: Duration = Duration::from_secs(5);
