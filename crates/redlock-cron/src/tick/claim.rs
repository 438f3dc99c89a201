//! The claim of one tick: what it asks of the nodes, and when a refused one is worth another try.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redlock_core::{RunRecord, Series, Tick};

use super::{
    PATIENCE, SHORT_WAIT,
    context::JobContext,
    ledger::{runs_backfill_after, runs_by_hand},
    random_up_to,
    ticks::JobTicks,
};
use crate::{
    Missed, Outcome, Overlap, Trigger,
    clock::{LONGEST_AHEAD, lag},
    job::{is_made_up, series::CANCELS},
    replica::{ClaimRequest, LOOK, Refusal, WonClaim},
};

/// The obstacle that keeps a tick from being claimed.
enum InTheWay {
    /// No run is known: other replicas ask for the tick, or too few nodes answered.
    Nothing,
    /// A run that was due or requested.
    Run,
    /// A run of a tick that was missed, is started again, or is one of a backfill.
    MadeUp,
}

/// This replica as the claimant of one tick.
pub(super) struct Claimant<'a> {
    pub(super) job: &'a JobContext,
    pub(super) ticks: &'a JobTicks,
    pub(super) tick: DateTime<Utc>,
}

impl Claimant<'_> {
    /// Claims the tick; `settled` is the tick of the last run that was cut short and is dealt with.
    pub(super) async fn claim(
        &self,
        trigger: Trigger,
        settled: Option<Tick>,
    ) -> Result<WonClaim, Refusal> {
        let job = self.job;
        let claims = &job.replica.claims;
        let after = job.after(settled);
        let fingerprint = match trigger {
            Trigger::CatchUp => job.fingerprint.of_made_up(),
            _ => job.fingerprint.number(),
        };
        let late = lag(self.tick, job.nodes_now());
        let left = |limit: Duration| limit.saturating_sub(late).max(SHORT_WAIT);
        let place_within = match trigger {
            Trigger::CatchUp => left(job.settings.catch_up_window),
            _ => left(job.settings.start_within),
        };
        let ask = |wait| ClaimRequest {
            start_within: job.settings.catch_up_window,
            after,
            fingerprint,
            place_within: Some(place_within),
            ..job.ask(Series::TICKS, self.tick, wait)
        };
        let left = left(job.settings.start_within);
        match job.settings.overlap {
            _ if trigger == Trigger::CatchUp => claims.claim(ask(SHORT_WAIT)).await,
            Overlap::Skip | Overlap::Allow | Overlap::UpTo(_) => {
                claims.claim(ask(SHORT_WAIT)).await
            }
            Overlap::Wait => claims.claim(ask(left)).await,
            Overlap::CancelOther => {
                let first = ClaimRequest {
                    place_within: Some(job.patience_for_a_place(left)),
                    ..ask(SHORT_WAIT)
                };
                match claims.claim(first).await {
                    Err(refusal) if job.is_in_its_own_way(&refusal) => {
                        let cancel = job.ask(CANCELS, self.tick, SHORT_WAIT);
                        job.cancel_others(cancel).await;
                        claims.claim(ask(left)).await
                    }
                    decided => decided,
                }
            }
        }
    }

    /// Returns in how much time the job's condition is asked again about a tick that it declines, because a missed tick
    /// may be made up for.
    ///
    /// That is when the next tick is due, or after [`PATIENCE`] if that is sooner.
    /// So the next tick waits for this one for at most that time.
    pub(super) fn asked_again_in(&self) -> Option<Duration> {
        let (job, tick) = (self.job, self.tick);
        let may_be_missed = job.settings.missed != Missed::Skip;
        if !may_be_missed || !self.ticks.is_newest(job, tick) || !self.is_worth_waiting_for() {
            return None;
        }
        // Those up to now were skipped.
        let next = job.schedule.next_after(tick.max(job.nodes_now()));
        let next_in = next.map(|next| lag(job.nodes_now(), next));
        Some(next_in.map_or(PATIENCE, |next_in| next_in.min(PATIENCE)))
    }

    /// Returns in how much time a tick that was refused is worth another try.
    pub(super) async fn again_in(
        &self,
        trigger: Trigger,
        refusal: &Refusal,
        tries: u32,
    ) -> Option<Duration> {
        match refusal.outcome {
            // It may be missed by now, and is worth a longer wait then.
            Outcome::NoPlace => self.is_worth_waiting_for().then_some(Duration::ZERO),
            // Clocks may be set meanwhile.
            Outcome::TooEarly => refusal
                .off_by
                .filter(|left| *left <= LONGEST_AHEAD)
                .map(|left| left.min(LOOK)),
            Outcome::NoQuorum if !self.is_worth_waiting_for() => None,
            // It may still start as one that is on time.
            Outcome::NoQuorum if self.is_fresh() => Some(a_while(tries)),
            Outcome::NoQuorum => Some(PATIENCE),
            // Nodes that have not answered may still grant it.
            Outcome::Forgotten if refusal.is_open && self.is_fresh() => Some(a_while(tries)),
            Outcome::Forgotten if refusal.is_open && trigger == Trigger::CatchUp => {
                self.is_worth_waiting_for().then_some(PATIENCE)
            }
            // What was missed has been waiting already.
            Outcome::Overlapping if trigger == Trigger::CatchUp => {
                self.is_worth_waiting_for().then_some(SHORT_WAIT)
            }
            // On a busy machine, replicas that all ask for the tick may be in each other's way for as long.
            Outcome::Overlapping => {
                let pause = a_while(tries);
                match self.in_the_way().await {
                    InTheWay::Run if self.job.settings.overlap != Overlap::Allow => None,
                    // No tick that is due is lost to a run that the scheduler makes up for another.
                    InTheWay::MadeUp if self.is_worth_waiting_for() => Some(pause),
                    _ => (self.is_fresh() && self.ticks.stands_for_itself(self.job, self.tick))
                        .then_some(pause),
                }
            }
            _ => None,
        }
    }

    /// Returns whether the tick may be started as one that was not missed.
    fn is_fresh(&self) -> bool {
        self.job.is_fresh(self.tick)
    }

    /// Returns whether it makes sense to try again to claim the tick if there is no majority.
    fn is_worth_waiting_for(&self) -> bool {
        self.ticks.is_worth_waiting_for(self.job, self.tick)
    }

    /// Asks the nodes what keeps a tick from being claimed.
    async fn in_the_way(&self) -> InTheWay {
        let job = self.job;
        let Some(record) = job.record().await else {
            return InTheWay::Nothing;
        };
        let ticks = record.of(Series::TICKS);
        let has_slots = job.slots.is_some();
        if ticks.free_in == Some(Duration::ZERO) && !has_slots {
            return InTheWay::Nothing;
        }
        if has_slots && ticks.runs.iter().any(RunRecord::is_open) {
            return InTheWay::Run;
        }
        let newest = ticks.runs.first();
        // A further attempt goes on, or has ended since the lock was looked at.
        if newest.is_some_and(|run| run.attempt > 1)
            || runs_backfill_after(&record, newest.map(|run| run.token))
        {
            return InTheWay::MadeUp;
        }
        if let Some(run) = newest
            && run.is_open()
        {
            return if is_made_up(run.fingerprint) {
                InTheWay::MadeUp
            } else {
                InTheWay::Run
            };
        }
        if runs_by_hand(&record)
            .first()
            .is_some_and(|run| run.is_open())
        {
            InTheWay::Run
        } else {
            InTheWay::Nothing
        }
    }
}

/// Returns the backoff of a claim after `tries` retries, with a random part.
///
/// It begins at a quarter of a second and doubles with each of the first retries.
/// So replicas that all ask for many ticks at once do not overload the nodes.
fn a_while(tries: u32) -> Duration {
    let least = SHORT_WAIT / 4 * (1 << tries.min(4));
    least + random_up_to(least)
}
