//! What a person does to a job: pause it, resume it, run it now.
//!
//! Each of these is a claim of the present moment, as of a tick, so that a majority of the nodes remembers it, and
//! the last one is the one that counts, whatever the clocks of those who ask.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use redlock_core::{Claim, ResourceKey, RunRecord, RunState};
use tokio::time::sleep;

use crate::{
    ControlError, Outcome, Overlap, TickReport, Trigger,
    claim::{Ask, Refusal, to_instant},
    course::SHORT_WAIT,
    execution::Start,
    runner::JobRunner,
};

impl JobRunner {
    /// Lets all replicas start the job, or none.
    pub(crate) async fn set_paused(&self, paused: bool) -> Result<(), ControlError> {
        let (number, word) = match paused {
            true => (PAUSED, "paused"),
            false => (RESUMED, "resumed"),
        };
        let key = self.id.pause_key();
        let ask = |now| Ask {
            lock: key.clone(),
            fingerprint: number,
            ..self.moment(key.clone(), now, CONFIRMED_WITHIN)
        };
        match self.claim_now(ask).await {
            Ok((claim, _)) => {
                self.finish(claim, word, Duration::ZERO).await;
                Ok(())
            }
            Err(refusal) => {
                let detail = refusal.detail.unwrap_or_default();
                let message = format!("it may not be {word}: {} {detail}", refusal.outcome);
                Err(ControlError::unconfirmed(self.id.name(), message))
            }
        }
    }

    /// Whether the job is paused; `None` if too few nodes answered.
    pub(crate) async fn is_paused(&self) -> Option<bool> {
        let state = self.replica.claims.read(self.id.pause_key()).await?;
        let last = state.runs.iter().find(|run| !is_unstarted(run));
        Some(last.is_some_and(|last| last.fingerprint == PAUSED))
    }

    /// Keeps a claim that a pause forbids to start.
    pub(crate) async fn unless_paused(&self, claim: Claim) -> Result<Claim, Refusal> {
        for _ in 0..PAUSE_LOOKS {
            match self.is_paused().await {
                Some(false) => return Ok(claim),
                Some(true) => {
                    let word = Outcome::Paused.as_str();
                    self.finish(claim, word, Duration::ZERO).await;
                    return Err(Refusal::bare(Outcome::Paused));
                }
                None => sleep(SHORT_WAIT).await,
            }
        }
        self.finish(claim, RunRecord::UNSTARTED, Duration::ZERO)
            .await;
        let why = "too few nodes said whether the job is paused";
        Err(Refusal::new(Outcome::NoQuorum, why))
    }

    /// Runs the job now, paused or not.
    pub(crate) async fn trigger(self: Arc<Self>) -> TickReport {
        match self.unless_draining(self.claim_run()).await {
            Ok(start) => self.start(start).await,
            Err(refusal) => self.refused(self.now(), Trigger::Manual, refusal),
        }
    }

    async fn claim_run(&self) -> Result<Start, Refusal> {
        let patient = self.terms.start_within;
        let ask = |wait| move |now| self.moment(self.id.manual_key(), now, wait);
        let claimed = match self.terms.overlap {
            Overlap::Wait => self.claim_now(ask(patient)).await,
            Overlap::Skip | Overlap::Allow => self.claim_now(ask(SHORT_WAIT)).await,
            Overlap::CancelOther => match self.claim_now(ask(SHORT_WAIT)).await {
                Err(refusal) if refusal.outcome == Outcome::Overlapping => {
                    self.cancel_others(self.now().trunc_subsecs(3)).await;
                    self.claim_now(ask(patient)).await
                }
                decided => decided,
            },
        };
        let (claim, tick) = claimed?;
        Ok(Start {
            claim,
            tick,
            trigger: Trigger::Manual,
            attempt: 1,
        })
    }

    /// A claim of a moment, for which clocks may differ a lot: nobody else comes to the same one.
    fn moment(&self, job: ResourceKey, now: DateTime<Utc>, wait: Duration) -> Ask {
        Ask {
            early: FAST,
            start_within: SLOW,
            ..self.ask(job, now, wait)
        }
    }

    /// Claims the present moment, or the first after the newest that was claimed.
    async fn claim_now(
        &self,
        ask: impl Fn(DateTime<Utc>) -> Ask,
    ) -> Result<(Claim, DateTime<Utc>), Refusal> {
        let mut now = self.now().trunc_subsecs(3);
        let mut attempt = 1;
        loop {
            match self.replica.claims.claim(ask(now)).await {
                Ok(claim) => return Ok((claim, now)),
                Err(refusal)
                    if refusal.outcome == Outcome::NotWinner && attempt < MOMENT_ATTEMPTS =>
                {
                    let newest = refusal.run.map_or(now, |run| to_instant(run.tick));
                    now = newest.max(now) + TimeDelta::milliseconds(1);
                }
                Err(refusal) => return Err(refusal),
            }
            attempt += 1;
        }
    }
}

/// Whether it was claimed, and nothing came of it.
fn is_unstarted(run: &RunRecord) -> bool {
    matches!(&run.state, RunState::Ended { outcome, .. } if outcome.as_str() == RunRecord::UNSTARTED)
}

/// What is remembered with the moments of a pause and its end, in place of a configuration.
const PAUSED: u64 = 1;
const RESUMED: u64 = 2;

/// How long to wait for others that pause or resume the job at the same time.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(5);

/// How often a majority is asked whether the job is paused, before a run is given up.
const PAUSE_LOOKS: u32 = 3;

/// How often others may be in the way.
const MOMENT_ATTEMPTS: u32 = 10;

/// By how much a clock may be ahead of the nodes', and behind.
///
/// The same on all replicas, for it is `early` and `start_within` of these claims.
const FAST: Duration = Duration::from_secs(60);
const SLOW: Duration = Duration::from_secs(24 * 60 * 60);
