//! Runs that did not end by themselves, and are started again.
//!
//! Each run of a tick after the first is claimed as a further attempt of it, under the same lock: so each is started once
//! at most, on one replica, the fencing tokens grow from one to the next, and no attempt follows the claim of a later tick.
//! Before and after it claims, a replica looks at what is remembered of the run before: that it did not end by
//! itself, and that no later tick was claimed.
//! A claim that no majority confirmed may be remembered by a node for a while, and may be taken for a run that was cut
//! short.
//! So a replica that has claimed a run checks whether a further one was claimed, and then does not start its own.
//! A later tick is claimed only when the last run is settled: the nodes say with their grant that it was cut short.
//! A run whose end is known too few nodes when its replica crashes is started again, which is what was asked for.
//!
//! A run that a shutdown or a removal ended uses up no attempt, but has its number.
//! When there will be no other run, the one after the last is claimed as well, and ends as given up: so one replica says
//! so, and the nodes remember it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redlock_core::{JobRecord, RunRecord, Series, ledger::RunsOfTick};
use tokio::time::{Instant, sleep};

use super::{
    SHORT_WAIT,
    attempts::{Backoff, UsedAttempts},
    context::JobContext,
    execution::Start,
    ledger::{lines, runs_of},
    pause::unless_forbidden,
    ticks::JobTicks,
};
use crate::{
    Outcome, Trigger,
    clock::{lag, to_tick},
    job::{LONGEST_WINDOW, MOST_RUNS, series::BACKFILLED},
    replica::{ClaimRequest, Refusal, WonClaim},
};

/// The retry of a tick whose run may have been cut short.
pub(crate) struct TickRetry<'a> {
    pub(super) job: &'a JobContext,
    pub(super) ticks: &'a JobTicks,
    pub(super) backoff: &'a Backoff,
    pub(super) tick: DateTime<Utc>,
    /// The number of the last run that is known.
    pub(super) attempt: u32,
}

/// What to do when no replica has claimed a tick that was looked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unclaimed {
    /// Look again: another replica may claim it.
    Wait,
    /// Return a refusal that is open.
    Tell,
}

/// What is done if a tick that is followed gets no run here.
#[derive(Clone, Copy)]
pub(super) enum WithoutRun {
    /// Report why, because nothing was reported of the tick.
    Report(Trigger),
    /// Report only what no other replica reports, because what became of the tick here was reported, or nothing did.
    ReportLast,
    /// The same, and log why it is not started again.
    ReportLastOrLog,
}

/// The result of a look at the runs of a tick.
pub(super) enum RetryLook {
    /// No replica has claimed the tick yet.
    Unclaimed,
    /// A run goes on, or that is not known.
    Open,
    /// This replica has claimed the next run.
    Again(Box<Start>),
    /// There will be no other run.
    Over(Box<Refusal>),
}

impl TickRetry<'_> {
    /// Waits for the end of the tick's run on another replica, and starts the tick again if the run is cut short.
    ///
    /// The first look is after `pause`.
    ///
    /// # Cancel safety
    ///
    /// As of a claim.
    pub(crate) async fn wait(
        mut self,
        mut pause: Duration,
        unclaimed: Unclaimed,
    ) -> Result<Start, Refusal> {
        let begun = Instant::now();
        loop {
            sleep(pause).await;
            match self.look().await {
                RetryLook::Again(start) => return Ok(*start),
                RetryLook::Over(refusal) => return Err(*refusal),
                RetryLook::Unclaimed if unclaimed == Unclaimed::Tell => {
                    return Err(Refusal {
                        is_open: true,
                        ..Refusal::bare(Outcome::NotWinner)
                    });
                }
                RetryLook::Unclaimed if self.is_too_late_for_another() => return Err(too_late()),
                // The replica that claims a later tick deals with this one first.
                RetryLook::Open
                    if self.is_too_late_for_another()
                        && !self.ticks.is_newest(self.job, self.tick) =>
                {
                    return Err(too_late());
                }
                RetryLook::Unclaimed | RetryLook::Open => {
                    pause = self.job.pause_after(begun.elapsed());
                }
            }
        }
    }

    /// Looks at a run that was cut short before a later tick may be claimed: claims its next run if it may have one.
    pub(super) async fn settle(mut self) -> RetryLook {
        loop {
            let looked_at = self.attempt;
            match self.look().await {
                RetryLook::Open if self.attempt > looked_at => {}
                look => return look,
            }
        }
    }

    /// Looks at how far the runs of the tick are, and claims the next if the last was cut short.
    async fn look(&mut self) -> RetryLook {
        let Some(record) = self.job.record().await else {
            return RetryLook::Open;
        };
        let runs = self.runs(&record);
        if runs == RunsOfTick::Unclaimed && self.may_be_claimed() {
            return RetryLook::Unclaimed;
        }
        if let Some(refusal) = self.no_other(runs, &record, u32::MAX) {
            return RetryLook::Over(Box::new(refusal));
        }
        let RunsOfTick::CutShort(attempt) = runs else {
            return RetryLook::Open;
        };
        self.attempt = attempt.into();
        let used = UsedAttempts::of(&record, self.tick);
        if used.attempts >= self.job.settings.max_attempts() || self.attempt >= MOST_RUNS {
            let why = "it has had all its attempts: the last did not end by itself, or was claimed and not begun";
            return self.give_up(why).await;
        }
        if self.is_too_late_for_another() {
            return self.give_up(TOO_LATE).await;
        }
        let late = lag(self.tick, self.job.nodes_now());
        let left = self.job.settings.retry_within().saturating_sub(late);
        if used.is_last_a_crash
            && self
                .backoff
                .goes_on(self.tick, self.attempt, used.crashes, left)
        {
            return RetryLook::Open;
        }
        if !self.job.wants(self.tick) {
            // Another replica may have what this one declines.
            return RetryLook::Open;
        }
        let ask = ClaimRequest {
            start_within: self.job.settings.retry_within(),
            ..self.next_request()
        };
        match self.job.replica.claims.claim(ask).await {
            Ok(won) => self.next_run(won).await,
            // By the nodes' clocks, which this replica may not know so well.
            Err(refusal) if refusal.outcome == Outcome::TooLate => self.give_up(TOO_LATE).await,
            Err(refusal) => self.refused(refusal),
        }
    }

    /// Returns what a refusal of the next claim tells.
    fn refused(&mut self, refusal: Refusal) -> RetryLook {
        match refusal.outcome {
            Outcome::NotWinner => {
                self.attempt += 1;
                RetryLook::Open
            }
            // Each replica would say that it has given the tick up.
            Outcome::Forgotten if !refusal.is_open => RetryLook::Over(Box::new(refusal)),
            // It is looked at again whether that matters.
            _ => RetryLook::Open,
        }
    }

    /// Returns the request of the run after the `attempt`-th.
    fn next_request(&self) -> ClaimRequest {
        ClaimRequest {
            attempt: self.attempt + 1,
            ..self.job.ask(Series::TICKS, self.tick, SHORT_WAIT)
        }
    }

    /// Gives a tick up after its `attempt`-th run; if another replica did so, or knows better, it is looked at again.
    async fn give_up(&mut self, why: &str) -> RetryLook {
        let given_up = || Refusal::new(Outcome::GivenUp, why);
        let ask = ClaimRequest {
            start_within: LONGEST_WINDOW,
            place_within: None,
            ..self.next_request()
        };
        match self.job.replica.claims.claim(ask).await {
            Ok(won) => {
                if let Some(not_so) = self.not_after().await {
                    self.job.finish(won.claim, RunRecord::UNSTARTED).await;
                    return not_so;
                }
                let word = Outcome::GivenUp.as_str();
                self.job.finish(won.claim, word).await;
                RetryLook::Over(Box::new(given_up()))
            }
            Err(refusal) if refusal.outcome == Outcome::TooLate => {
                RetryLook::Over(Box::new(given_up()))
            }
            Err(refusal) => self.refused(refusal),
        }
    }

    /// Returns why the run after the `attempt`-th, which this replica has claimed, is not started, if it is not.
    ///
    /// If too few nodes had heard of the run before, no replica has claimed that one, and none can any more.
    async fn not_after(&self) -> Option<RetryLook> {
        let record = self.job.record().await?;
        let attempt = u8::try_from(self.attempt).ok()?;
        let (runs, backfilled) = (lines(&record, Series::TICKS), lines(&record, BACKFILLED));
        let runs = RunsOfTick::before_next(to_tick(self.tick)?, attempt, runs, backfilled);
        let refusal = self.no_other(runs, &record, self.attempt)?;
        Some(RetryLook::Over(Box::new(refusal)))
    }

    /// Starts the run after the `attempt`-th, which was claimed, unless it may not start any more.
    async fn next_run(&self, won: WonClaim) -> RetryLook {
        if let Some(not_again) = self.not_after().await {
            self.job.finish(won.claim, RunRecord::UNSTARTED).await;
            return not_again;
        }
        let (limit, attempt) = (self.job.settings.retry_within(), self.attempt + 1);
        match unless_forbidden(self.job, won, attempt, limit).await {
            Ok(won) => RetryLook::Again(Box::new(Start {
                won,
                tick: self.tick,
                trigger: Trigger::Retry,
                attempt,
            })),
            // One after it may go on.
            Err(refusal) if refusal.outcome == Outcome::NotWinner => RetryLook::Open,
            Err(refusal) => RetryLook::Over(Box::new(refusal)),
        }
    }

    #[cfg(test)]
    pub(crate) async fn starts_again(&self, won: WonClaim) -> bool {
        matches!(self.next_run(won).await, RetryLook::Again(_))
    }

    /// Returns how far the runs of the tick are.
    fn runs(&self, record: &JobRecord) -> RunsOfTick {
        let Some(tick) = to_tick(self.tick) else {
            return RunsOfTick::Passed;
        };
        let ticks = record.of(Series::TICKS);
        let is_free = ticks.free_in == Some(Duration::ZERO);
        let (runs, backfilled) = (lines(record, Series::TICKS), lines(record, BACKFILLED));
        RunsOfTick::of(tick, ticks.watermark, is_free, runs, backfilled)
    }

    /// Returns whether the tick may still be claimed, as far as this replica knows.
    fn may_be_claimed(&self) -> bool {
        let (job, tick) = (self.job, self.tick);
        self.ticks.is_newest(job, tick) && self.ticks.is_worth_waiting_for(job, tick)
    }

    /// Returns why the tick has no run after the `attempt`-th; `None` if it may have one, or that is not known.
    fn no_other(&self, runs: RunsOfTick, record: &JobRecord, attempt: u32) -> Option<Refusal> {
        let not_winner = Refusal::bare(Outcome::NotWinner);
        match runs {
            RunsOfTick::Open | RunsOfTick::CutShort(_) => None,
            RunsOfTick::Unclaimed | RunsOfTick::Passed => Some(not_winner),
            RunsOfTick::Ended => {
                let mut runs = runs_of(record, self.tick);
                let run = runs.find(|run| u32::from(run.attempt) <= attempt).cloned();
                Some(Refusal { run, ..not_winner })
            }
            RunsOfTick::MadeGood => Some(Refusal::new(Outcome::NotWinner, MADE_GOOD)),
        }
    }

    /// Returns whether the tick may not be started again any more, by the nodes' clocks as far as they are known.
    fn is_too_late_for_another(&self) -> bool {
        lag(self.tick, self.job.nodes_now()) > self.job.settings.retry_within()
    }
}

fn too_late() -> Refusal {
    Refusal::new(Outcome::NotWinner, TOO_LATE)
}

const MADE_GOOD: &str = "a run did not end by itself, and a backfill has run the tick well since";

const TOO_LATE: &str = "a run did not end by itself, and it is too late for another";
