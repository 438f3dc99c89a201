//! Runs that did not end by themselves, and are started again.
//!
//! Each run of a tick after the first is claimed as a tick of a job of its own, under the same lock: so each is
//! started once at most, on one replica, and the fencing tokens grow from one to the next.
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

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::future::{BoxFuture, FutureExt};
use redlock_core::{RunRecord, RunState};
use tokio::time::{Instant, sleep};

use super::{course::SHORT_WAIT, execution::Start, pause::is_unstarted, runner::JobRunner};
use crate::{
    Missed, Outcome, Trigger,
    clock::{lag, to_tick},
    job::{LONGEST_WINDOW, MOST_RUNS},
    replica::{ClaimRequest, Refusal, Won, cut_short_outcomes},
};

/// The state of the runs of a tick.
enum Attempts {
    /// No replica has claimed the run that was looked for.
    Unclaimed,
    /// A run goes on, or that is not known.
    Open,
    /// The last run was cut short.
    CutShort,
    /// There will be no other run.
    Over(Refusal),
}

/// What to do when no replica has claimed a tick that was looked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unclaimed {
    /// Look again: another replica may claim it.
    Wait,
    /// Return a refusal that is open.
    Tell,
}

/// The result of a look at the runs of a tick.
enum Look {
    /// No replica has claimed the tick yet.
    Unclaimed,
    /// A run goes on, or that is not known.
    Open,
    /// This replica has claimed the next run.
    Again(Box<Start>),
    /// There will be no other run.
    Over(Refusal),
}

impl JobRunner {
    /// Waits for the end of a tick's run on another replica, and starts the tick again if the run is cut short.
    ///
    /// The first look is after `pause`.
    ///
    /// # Cancel safety
    ///
    /// As of a claim.
    pub(crate) async fn retry(
        &self,
        tick: DateTime<Utc>,
        pause: Duration,
        unclaimed: Unclaimed,
    ) -> Result<Start, Refusal> {
        let begun = Instant::now();
        let (mut attempt, mut pause) = (1, pause);
        loop {
            sleep(pause).await;
            match self.look(tick, &mut attempt).await {
                Look::Again(start) => return Ok(*start),
                Look::Over(refusal) => return Err(refusal),
                Look::Unclaimed if unclaimed == Unclaimed::Tell => {
                    return Err(Refusal {
                        is_open: true,
                        ..Refusal::bare(Outcome::NotWinner)
                    });
                }
                Look::Unclaimed if self.is_too_late_for_another(tick) => return Err(too_late()),
                // The replica that claims a later tick deals with this one first.
                Look::Open if self.is_too_late_for_another(tick) && !self.is_newest(tick) => {
                    return Err(too_late());
                }
                Look::Unclaimed | Look::Open => pause = self.pause_after(begun.elapsed()),
            }
        }
    }

    /// Starts a tick again that another replica has claimed, if its run is cut short; reports it otherwise.
    pub(crate) async fn follow(self: Arc<Self>, tick: DateTime<Utc>, trigger: Trigger) {
        let pause = self.pause_after(Duration::ZERO);
        let retry = self.retry(tick, pause, Unclaimed::Tell);
        match self.unless_draining(retry).await {
            Ok(start) => self.start_all(start).await,
            // It was taken for claimed because a few nodes had heard of a claim that no majority confirmed.
            Err(refusal) if refusal.is_open => self.ask_again(tick).await,
            Err(refusal) => drop(self.refused(tick, trigger, refusal)),
        }
    }

    /// Deals with a tick once more, in its order among others.
    fn ask_again(self: Arc<Self>, tick: DateTime<Utc>) -> BoxFuture<'static, ()> {
        match self.settings.missed {
            Missed::All { max } => {
                let begins = self.backlog.add([tick], max);
                self.work_off(begins).boxed()
            }
            _ => async move { self.deal_with(tick).await }.boxed(),
        }
    }

    /// Starts a tick again that was started before this replica came up, or lost its lease here, if its run is cut short.
    pub(crate) async fn resume(self: Arc<Self>, tick: DateTime<Utc>, pause: Duration) {
        // Without a run here, nothing became of the tick on this replica, or what became of it was reported.
        let retry = self.retry(tick, pause, Unclaimed::Wait);
        match self.unless_draining(retry).await {
            Ok(start) => self.start_all(start).await,
            Err(refusal) => self.say_if_given_up(tick, refusal),
        }
    }

    /// Starts a tick again that this replica did not get to ask for, if another starts it and its run is cut short.
    pub(crate) async fn look_after(self: Arc<Self>, tick: DateTime<Utc>) {
        // A later tick is due, and the replica that claims it deals with this one.
        if !self.is_newest(tick) {
            return;
        }
        let pause = self.pause_after(Duration::ZERO);
        let retry = self.retry(tick, pause, Unclaimed::Wait);
        match self.unless_draining(retry).await {
            Ok(start) => self.start_all(start).await,
            Err(refusal) => self.say_if_not_again(tick, refusal),
        }
    }

    /// Reports that this replica has given a tick up.
    pub(crate) fn say_if_given_up(&self, tick: DateTime<Utc>, refusal: Refusal) {
        if refusal.outcome == Outcome::GivenUp {
            self.refused(tick, Trigger::Retry, refusal);
        }
    }

    fn say_if_not_again(&self, tick: DateTime<Utc>, refusal: Refusal) {
        if refusal.outcome == Outcome::GivenUp {
            self.say_if_given_up(tick, refusal);
        } else if let Some(why) = refusal.detail {
            tracing::warn!(target: crate::TARGET, job = &**self.id.name(), %tick, why, "not started again");
        }
    }

    /// Sees to it that a run which was cut short is started again, if it may be; returns whether a later tick may be
    /// claimed now.
    pub(crate) async fn settle(self: &Arc<Self>, tick: DateTime<Utc>) -> bool {
        let mut attempt = 1;
        loop {
            let looked_at = attempt;
            match self.look(tick, &mut attempt).await {
                Look::Again(start) => {
                    let this = Arc::clone(self);
                    let run = async move { this.start_all(*start).await };
                    self.replica.tasks.spawn(run);
                    return false;
                }
                Look::Over(refusal) => {
                    self.say_if_not_again(tick, refusal);
                    return true;
                }
                Look::Open if attempt > looked_at => {}
                Look::Unclaimed | Look::Open => return false,
            }
        }
    }

    /// Looks at how far the runs of a tick are, the `attempt`-th first, and claims the next if that one was cut short.
    async fn look(&self, tick: DateTime<Utc>, attempt: &mut u32) -> Look {
        loop {
            match self.attempts(tick, *attempt).await {
                Attempts::Over(refusal) => return Look::Over(refusal),
                Attempts::Unclaimed if *attempt == 1 => return Look::Unclaimed,
                Attempts::Unclaimed => {
                    *attempt = 1;
                    return Look::Open;
                }
                Attempts::Open => return Look::Open,
                Attempts::CutShort => {}
            }
            // A run that was claimed already needs no backoff before it.
            match self.is_claimed(tick, *attempt + 1).await {
                Some(true) => *attempt += 1,
                Some(false) => break,
                None => return Look::Open,
            }
        }
        let Some(used) = self.used(tick, *attempt).await else {
            return Look::Open;
        };
        if used.attempts >= self.settings.max_attempts() || *attempt >= MOST_RUNS {
            let why = "it has had all its attempts: the last did not end by itself, or was claimed and not begun";
            return self.give_up(tick, attempt, why).await;
        }
        if self.is_too_late_for_another(tick) {
            return self.give_up(tick, attempt, TOO_LATE).await;
        }
        let late = lag(tick, self.nodes_now());
        let left = self.settings.retry_within().saturating_sub(late);
        if used.is_last_a_crash && self.backoff.goes_on(tick, *attempt, used.crashes, left) {
            return Look::Open;
        }
        if !self.wants(tick) {
            // Another replica may have what this one declines.
            return Look::Open;
        }
        let ask = ClaimRequest {
            start_within: self.settings.retry_within(),
            ..self.ask(self.attempt_key(*attempt + 1), tick, SHORT_WAIT)
        };
        match self.replica.claims.claim(ask).await {
            Ok(won) => self.next_run(won, tick, *attempt).await,
            Err(refusal) => match refusal.outcome {
                Outcome::NotWinner => {
                    *attempt += 1;
                    Look::Open
                }
                // By the nodes' clocks, which this replica may not know so well.
                Outcome::TooLate => self.give_up(tick, attempt, TOO_LATE).await,
                Outcome::Forgotten if !refusal.is_open => Look::Over(refusal),
                // It is looked at again whether that matters.
                _ => Look::Open,
            },
        }
    }

    /// Gives a tick up after its `attempt`-th run; if another replica did so, or knows better, it is looked at again.
    async fn give_up(&self, tick: DateTime<Utc>, attempt: &mut u32, why: &str) -> Look {
        let given_up = || Refusal::new(Outcome::GivenUp, why);
        let ask = ClaimRequest {
            start_within: LONGEST_WINDOW,
            place_within: None,
            ..self.ask(self.attempt_key(*attempt + 1), tick, SHORT_WAIT)
        };
        match self.replica.claims.claim(ask).await {
            Ok(won) => {
                if let Some(not_so) = self.not_after(tick, *attempt).await {
                    self.finish(won.claim, RunRecord::UNSTARTED, Duration::ZERO)
                        .await;
                    return not_so;
                }
                self.finish(won.claim, Outcome::GivenUp.as_str(), Duration::ZERO)
                    .await;
                Look::Over(given_up())
            }
            Err(refusal) => match refusal.outcome {
                Outcome::NotWinner => {
                    *attempt += 1;
                    Look::Open
                }
                Outcome::TooLate => Look::Over(given_up()),
                Outcome::Forgotten if !refusal.is_open => Look::Over(given_up()),
                _ => Look::Open,
            },
        }
    }

    /// Returns why there is no run after the `attempt`-th, which this replica has claimed, if there is none.
    async fn not_after(&self, tick: DateTime<Utc>, attempt: u32) -> Option<Look> {
        // No other replica can claim a tick now.
        match self.attempts(tick, attempt).await {
            // Too few nodes had heard of the run before, which was never claimed and may still be.
            Attempts::Unclaimed if attempt == 1 => Some(Look::Unclaimed),
            Attempts::Unclaimed => Some(Look::Open),
            Attempts::Over(refusal) => Some(Look::Over(refusal)),
            Attempts::Open | Attempts::CutShort => None,
        }
    }

    /// Starts the run after the `attempt`-th, which was claimed, unless it may not start any more.
    async fn next_run(&self, won: Won, tick: DateTime<Utc>, attempt: u32) -> Look {
        if let Some(not_again) = self.not_after(tick, attempt).await {
            self.finish(won.claim, RunRecord::UNSTARTED, Duration::ZERO)
                .await;
            return not_again;
        }
        let (limit, attempt) = (self.settings.retry_within(), attempt + 1);
        match self.unless_forbidden(won, attempt, limit).await {
            Ok(won) => Look::Again(Box::new(Start {
                won,
                tick,
                trigger: Trigger::Retry,
                attempt,
            })),
            // One after it may go on.
            Err(refusal) if refusal.outcome == Outcome::NotWinner => Look::Open,
            Err(refusal) => Look::Over(refusal),
        }
    }

    #[cfg(test)]
    pub(crate) async fn starts_again(&self, won: Won, tick: DateTime<Utc>) -> bool {
        matches!(self.next_run(won, tick, 1).await, Look::Again(_))
    }

    /// Returns how long to wait for the next look at a run that began `since` ago, as far as this replica knows.
    pub(crate) fn pause_after(&self, since: Duration) -> Duration {
        let longest = (since / 20).clamp(LEAST_PAUSE, LONGEST_PAUSE);
        (self.settings.ttl / 3).min(longest)
    }

    async fn attempts(&self, tick: DateTime<Utc>, attempt: u32) -> Attempts {
        let Some(first) = self.replica.claims.read(self.id.job_key()).await else {
            return Attempts::Open;
        };
        let not_winner = || Refusal::bare(Outcome::NotWinner);
        if first.watermark != to_tick(tick) {
            let may_be_claimed = first.watermark < to_tick(tick)
                && self.is_newest(tick)
                && self.is_worth_waiting_for(tick);
            return if may_be_claimed {
                Attempts::Unclaimed
            } else {
                Attempts::Over(not_winner())
            };
        }
        let runs = match attempt {
            1 => first.runs,
            _ => match self.replica.claims.read(self.attempt_key(attempt)).await {
                Some(state) => state.runs,
                None => return Attempts::Open,
            },
        };
        match runs.into_iter().find(|run| Some(run.tick) == to_tick(tick)) {
            None if attempt > 1 => Attempts::Unclaimed,
            None => Attempts::Open,
            Some(run) => match &run.state {
                RunState::Ended { .. } if run.was_cut_short(&cut_short_outcomes()) => {
                    Attempts::CutShort
                }
                RunState::Ended { .. } => Attempts::Over(Refusal {
                    run: Some(run),
                    ..not_winner()
                }),
                // Its replica holds the lock for as long as it lives.
                _ if first.free_in == Some(Duration::ZERO) => Attempts::CutShort,
                _ => Attempts::Open,
            },
        }
    }

    /// Returns whether a run of the tick was claimed after the `attempt`-th, and may have begun; `None` if too few nodes
    /// answered.
    ///
    /// So it is if another replica had heard of such a claim that no majority confirmed, before this one's.
    pub(crate) async fn is_started_again(&self, tick: DateTime<Utc>, attempt: u32) -> Option<bool> {
        for further in attempt + 1..=MOST_RUNS + 1 {
            let state = self.replica.claims.read(self.attempt_key(further)).await?;
            let mut runs = state.runs.iter();
            match runs.find(|run| Some(run.tick) == to_tick(tick)) {
                Some(run) if is_unstarted(run) => {}
                run => return Some(run.is_some()),
            }
        }
        Some(false)
    }

    /// Returns whether the tick may not be started again any more, by the nodes' clocks as far as they are known.
    fn is_too_late_for_another(&self, tick: DateTime<Utc>) -> bool {
        lag(tick, self.nodes_now()) > self.settings.retry_within()
    }
}

fn too_late() -> Refusal {
    Refusal::new(Outcome::NotWinner, TOO_LATE)
}

const TOO_LATE: &str = "a run did not end by itself, and it is too late for another";

/// How often it is looked at whether a run goes on elsewhere, at the least: in its first twenty seconds, so that another
/// attempt comes soon after a shutdown, and when it has gone on for long.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
