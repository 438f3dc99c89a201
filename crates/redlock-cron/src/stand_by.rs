//! Runs that did not end by themselves, and are started again.
//!
//! Each run of a tick after the first is claimed as a tick of a job of its own, under the same lock: so each is
//! started once at most, on one replica, and the fencing tokens grow from one to the next.
//! Before and after it claims, a replica looks at what is remembered of the run before: that it did not end by
//! itself, and that no later tick was claimed.
//! A run whose end is known too few nodes when its replica crashes is started again, which is what was asked for.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redlock_core::{ResourceKey, RunRecord, RunState};
use tokio::time::sleep;

use crate::{
    Outcome, Trigger,
    claim::{Ask, Refusal, to_tick},
    clock::lag,
    course::SHORT_WAIT,
    execution::Start,
    runner::JobRunner,
};

/// How far the runs of a tick are.
enum Standing {
    /// One goes on, or nobody can tell.
    Open,
    /// The last was cut short.
    CutShort,
    /// There will be no other.
    Over(Refusal),
}

impl JobRunner {
    /// Waits for the end of a tick's run on another replica, and starts the tick again if the run is cut short.
    ///
    /// # Cancel safety
    ///
    /// As of a claim.
    pub(crate) async fn stand_by(&self, tick: DateTime<Utc>) -> Result<Start, Refusal> {
        let mut attempt = 1;
        loop {
            sleep((self.terms.ttl / 3).min(LONGEST_PAUSE)).await;
            match self.standing(tick, attempt).await {
                Standing::Over(refusal) => return Err(refusal),
                _ if lag(tick, self.now()) > self.terms.window => {
                    let why = "a run did not end by itself, and it is too late for another";
                    return Err(Refusal::new(Outcome::NotWinner, why));
                }
                Standing::Open => continue,
                Standing::CutShort if attempt == self.terms.max_attempts => {
                    let why = "the last run that it may have did not end by itself";
                    return Err(Refusal::new(Outcome::NotWinner, why));
                }
                Standing::CutShort => {}
            }
            let ask = Ask {
                start_within: self.terms.window,
                ..self.ask(self.attempt_key(attempt + 1), tick, SHORT_WAIT)
            };
            match self.replica.claims.claim(ask).await {
                Ok(won) => {
                    // Nobody else can claim a tick now.
                    if let Standing::Over(refusal) = self.standing(tick, attempt).await {
                        self.finish(won.claim, RunRecord::UNSTARTED, Duration::ZERO)
                            .await;
                        return Err(refusal);
                    }
                    return Ok(Start {
                        won: self.unless_paused(won).await?,
                        tick,
                        trigger: Trigger::Retry,
                        attempt: attempt + 1,
                    });
                }
                Err(refusal) if refusal.outcome == Outcome::NotWinner => attempt += 1,
                // It is looked at again whether that matters.
                Err(_) => {}
            }
        }
    }

    async fn standing(&self, tick: DateTime<Utc>, attempt: u32) -> Standing {
        let Some(first) = self.replica.claims.read(self.id.job_key()).await else {
            return Standing::Open;
        };
        let not_winner = || Refusal::bare(Outcome::NotWinner);
        if first.watermark != to_tick(tick) {
            return Standing::Over(not_winner());
        }
        let runs = match attempt {
            1 => first.runs,
            _ => match self.replica.claims.read(self.attempt_key(attempt)).await {
                Some(state) => state.runs,
                None => return Standing::Open,
            },
        };
        match runs.into_iter().find(|run| Some(run.tick) == to_tick(tick)) {
            None => Standing::Open,
            Some(run) => match &run.state {
                RunState::Ended { outcome, .. } if is_cut_short(outcome.as_str()) => {
                    Standing::CutShort
                }
                RunState::Ended { .. } => Standing::Over(Refusal {
                    run: Some(run),
                    ..not_winner()
                }),
                // Its replica holds the lock for as long as it lives.
                _ if first.free_in == Some(Duration::ZERO) => Standing::CutShort,
                _ => Standing::Open,
            },
        }
    }

    fn attempt_key(&self, attempt: u32) -> ResourceKey {
        match attempt {
            1 => self.id.job_key(),
            _ => self.id.attempt_key(attempt),
        }
    }
}

/// Whether a run that ended so did not end by itself.
fn is_cut_short(outcome: &str) -> bool {
    let words = [
        Outcome::Lost.as_str(),
        Outcome::Aborted.as_str(),
        Outcome::Draining.as_str(),
        RunRecord::DROPPED,
        RunRecord::UNSTARTED,
    ];
    words.contains(&outcome)
}

/// How often it is looked at whether a run goes on elsewhere, at the least: so late is another attempt after a shutdown.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
