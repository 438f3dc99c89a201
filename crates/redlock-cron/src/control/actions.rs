//! The actions of a person on a job: pause it, resume it, run it now.
//!
//! Each action is a claim of the present moment, like the claim of a tick, so a majority of the nodes remembers it.
//! The last action counts, whatever the clocks of the callers show.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use redlock_core::{ResourceKey, Series};
use tokio::time::{Instant, sleep};

use super::log::log_action;
use crate::{
    Action, ControlError, Outcome, Overlap, TickReport, Trigger,
    clock::to_instant,
    job::{
        JobId,
        series::{CANCELS, MANUAL, PAUSES, STOPS},
    },
    replica::{After, ClaimRequest, Claims, Refusal, WonClaim, finish_noted},
    tick::{JobRunner, SHORT_WAIT, Start, Switch},
};

/// Lets all replicas start a job, or none.
pub(super) async fn switch(
    claims: &Claims,
    id: &JobId,
    ttl: Duration,
    switch: Switch,
    action: &Action,
) -> Result<(), ControlError> {
    let until = action.until.filter(|_| switch == Switch::Paused);
    if let Some(until) = until
        && until <= claims.clock.now() - claims.ahead().await.unwrap_or_default()
    {
        let why = "the end of the pause is over, by the nodes' clocks; nothing was done";
        return Err(ControlError::invalid_range(id.name(), why));
    }
    let moment = Moment {
        series: PAUSES,
        number: switch.number(),
        word: switch.as_str(),
        verb: match switch {
            Switch::Paused => "pause",
            Switch::Resumed => "resume",
        },
        until,
    };
    moment.remember(claims, id, ttl, action).await
}

/// Asks the runs of a job that go on to end.
pub(super) async fn stop_runs(
    claims: &Claims,
    id: &JobId,
    ttl: Duration,
    action: &Action,
) -> Result<(), ControlError> {
    let moment = Moment {
        series: STOPS,
        number: 0,
        word: "stopped",
        verb: "stop",
        until: None,
    };
    moment.remember(claims, id, ttl, action).await
}

/// The moment of an action, for the nodes to remember.
pub(super) struct Moment {
    pub(super) series: Series,
    pub(super) number: u64,
    pub(super) word: &'static str,
    /// As the log of actions calls it.
    pub(super) verb: &'static str,
    pub(super) until: Option<DateTime<Utc>>,
}

impl Moment {
    /// Makes a majority of the nodes remember the present moment, with the action's name and reason.
    pub(super) async fn remember(
        self,
        claims: &Claims,
        id: &JobId,
        ttl: Duration,
        action: &Action,
    ) -> Result<(), ControlError> {
        let (word, number) = (self.word, self.number);
        let ask = |now| moment_of(id, self.series, (number, ttl), CONFIRMED_WITHIN, now);
        match claims.claim_now(None, TimeDelta::zero(), ask).await {
            Ok((won, moment)) => {
                let lasts = self.until.and_then(|until| (until - moment).to_std().ok());
                let note = action.to_note();
                let lasts = lasts.unwrap_or_default();
                finish_noted(id, won.claim, word, lasts, note.as_deref()).await;
                let job = id.to_string();
                if let Err(error) = log_action(&claims.redlock, self.verb, &job, action).await {
                    tracing::warn!(target: crate::TARGET, job, error = error.to_string(), "done, and not in the log of actions");
                }
                Ok(())
            }
            Err(refusal) => {
                let why = refusal.detail;
                let why = why.unwrap_or_else(|| refusal.outcome.to_string());
                let message =
                    format!("no majority has confirmed that it is {word}; try again: {why}");
                Err(ControlError::unconfirmed(id.name(), message))
            }
        }
    }
}

/// Returns the request of a moment of which the nodes remember this number, and that no run follows.
pub(super) fn moment_of(
    id: &JobId,
    series: Series,
    terms: (u64, Duration),
    wait: Duration,
    now: DateTime<Utc>,
) -> ClaimRequest {
    moment_under(id.job_key(), id.lock_of(series), series, terms, wait, now)
}

/// The same, in a record and under a lock that need not be a job's.
pub(super) fn moment_under(
    job: ResourceKey,
    lock: ResourceKey,
    series: Series,
    (number, ttl): (u64, Duration),
    wait: Duration,
    now: DateTime<Utc>,
) -> ClaimRequest {
    ClaimRequest {
        job,
        series,
        attempt: 1,
        lock,
        tick: now,
        early: EARLY,
        start_within: LATE,
        ttl,
        wait,
        fingerprint: number,
        after: After::Whatever,
        slots: None,
        place_within: None,
    }
}

impl JobRunner {
    /// Lets all replicas start the job, or none.
    pub(crate) async fn set_paused(&self, paused: bool) -> Result<(), ControlError> {
        self.set_paused_by(paused, &Action::default()).await
    }

    /// The same, with a name, a reason, and the end of a pause.
    pub(crate) async fn set_paused_by(
        &self,
        paused: bool,
        action: &Action,
    ) -> Result<(), ControlError> {
        let to = if paused {
            Switch::Paused
        } else {
            Switch::Resumed
        };
        switch(
            &self.job.replica.claims,
            &self.job.id,
            self.job.settings.ttl,
            to,
            action,
        )
        .await
    }

    /// Runs the job now, paused or not.
    pub(crate) async fn trigger(self: Arc<Self>) -> TickReport {
        match self.job.unless_draining(self.claim_run()).await {
            Ok(start) => start.run(&self.job).await,
            Err(refusal) => self.job.refused(self.job.now(), Trigger::Manual, refusal),
        }
    }

    async fn claim_run(&self) -> Result<Start, Refusal> {
        let patient = self.job.settings.start_within;
        let ask = |wait| move |now| self.moment(MANUAL, now, wait);
        let claims = &self.job.replica.claims;
        let place = Some(patient);
        // By the nodes' clocks, so that the next request, which cancels this run, has a later moment.
        let ahead = claims.ahead().await.unwrap_or_default();
        let claimed = match self.job.settings.overlap {
            Overlap::Wait => claims.claim_now(place, ahead, ask(patient)).await,
            Overlap::Skip | Overlap::Allow | Overlap::UpTo(_) => {
                claims.claim_now(place, ahead, ask(SHORT_WAIT)).await
            }
            Overlap::CancelOther => {
                let first = Some(self.job.patience_for_a_place(patient));
                match claims.claim_now(first, ahead, ask(SHORT_WAIT)).await {
                    Err(refusal) if self.job.is_in_its_own_way(&refusal) => {
                        let asked = self.nodes_moment().await;
                        let cancel = self.moment(CANCELS, asked, SHORT_WAIT);
                        self.job.cancel_others(cancel).await;
                        // A run of an earlier moment would be among those that were asked to end.
                        let ask = |now: DateTime<Utc>| ask(patient)(now.max(asked));
                        let claimed = claims.claim_now(place, ahead, ask).await;
                        claimed.map(|(won, now)| (won, now.max(asked)))
                    }
                    decided => decided,
                }
            }
        };
        let (won, tick) = claimed?;
        Ok(Start {
            won,
            tick,
            trigger: Trigger::Manual,
            attempt: 1,
        })
    }

    /// Returns the present moment by the nodes' clocks, however far this replica's is off; by its own if they disagree.
    async fn nodes_moment(&self) -> DateTime<Utc> {
        let ahead = self.job.replica.claims.ahead().await.unwrap_or_default();
        (self.job.now() - ahead).trunc_subsecs(3)
    }

    /// Returns the request of a moment.
    fn moment(&self, series: Series, now: DateTime<Utc>, wait: Duration) -> ClaimRequest {
        ClaimRequest {
            early: EARLY,
            start_within: LATE,
            // The claim has its place before its moment is chosen.
            place_within: None,
            ..self.job.ask(series, now, wait)
        }
    }
}

impl Claims {
    /// Claims the present moment by the nodes' clocks, or the first after the newest that was claimed.
    ///
    /// The first moment that it asks for is that of this replica's clock, less `ahead`.
    /// With `place_within`, the claim waits for a place among the replica's runs first, for at most that time.
    /// A claim that waits for a lock for longer than its moment lasts asks for a later moment.
    pub(crate) async fn claim_now(
        &self,
        place_within: Option<Duration>,
        ahead: TimeDelta,
        ask: impl Fn(DateTime<Utc>) -> ClaimRequest,
    ) -> Result<(WonClaim, DateTime<Utc>), Refusal> {
        // Before the clock is read: the wait may be long.
        let place = self.place(place_within).await?;
        let present = || (self.clock.now() - ahead).trunc_subsecs(3);
        let mut now = present();
        let mut newest = None;
        let mut patient = None;
        let mut attempts = 0;
        while attempts < MOMENT_ATTEMPTS {
            let asked = Instant::now();
            let request = ask(now);
            let patient = *patient.get_or_insert(asked + request.wait);
            let wait = match request.wait {
                long if long > LONGEST_WAIT => LONGEST_WAIT.min(patient - asked),
                short => short,
            };
            let refusal = match self.claim(ClaimRequest { wait, ..request }).await {
                Ok(won) => {
                    let won = WonClaim {
                        _place: place,
                        ..won
                    };
                    return Ok((won, now));
                }
                Err(refusal) => refusal,
            };
            match refusal.off_by {
                Some(ahead) if refusal.outcome == Outcome::TooEarly => match newest {
                    None => now -= whole(ahead),
                    // The moment after the newest claim is still to come: wait until it may be claimed.
                    Some(_) if ahead <= CONFIRMED_WITHIN => sleep(ahead).await,
                    Some(until) => return Err(Refusal::still_to_come(until)),
                },
                // The window's edge would be past when the next claim comes.
                Some(behind) => now += whole(behind.saturating_add(LATE)),
                // What comes a moment later could not be claimed before the nodes forgot.
                None if refusal.outcome == Outcome::Forgotten => {
                    sleep(SHORT_WAIT).await;
                    now = present().max(now);
                }
                None if refusal.outcome == Outcome::NotWinner => {
                    let last = refusal.run.map_or(now, |run| to_instant(run.tick)).max(now);
                    newest = Some(last);
                    now = last + TimeDelta::milliseconds(1);
                }
                None if refusal.outcome == Outcome::Overlapping
                    && wait == LONGEST_WAIT
                    && asked.elapsed() >= wait
                    && Instant::now() < patient =>
                {
                    now += whole(asked.elapsed());
                    continue;
                }
                None => return Err(refusal),
            }
            attempts += 1;
        }
        Err(Refusal::new(Outcome::NotWinner, "others were in the way"))
    }
}

/// Converts a duration; one that is too long for the result becomes zero.
fn whole(by: Duration) -> TimeDelta {
    TimeDelta::from_std(by).unwrap_or(TimeDelta::zero())
}

/// The time within which a replica starts a run that was [requested](crate::request_run), by the nodes' clocks: a
/// minute.
///
/// # Examples
///
/// ```
/// assert_eq!(redlock_cron::REQUEST_LIFETIME.as_secs(), 60);
/// ```
pub const REQUEST_LIFETIME: Duration = Duration::from_secs(60);

/// How long to wait for others that pause or resume the job at the same time.
pub(super) const CONFIRMED_WITHIN: Duration = Duration::from_secs(5);

/// How often others may be in the way.
const MOMENT_ATTEMPTS: u32 = 10;

/// The window around a moment in which the nodes' clocks must be.
///
/// The same on all replicas, for it is `early` and `start_within` of these claims.
/// It is short because nodes that lost their data refuse what could have been claimed before.
pub(super) const EARLY: Duration = Duration::from_secs(2);
const LATE: Duration = Duration::from_secs(60);

/// How long a claim of a moment may wait: nodes judge whether it is late before they judge its lock.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
