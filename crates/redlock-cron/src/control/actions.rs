//! The actions of a person on a job: pause it, resume it, run it now.
//!
//! Each action is a claim of the present moment, like the claim of a tick, so a majority of the nodes remembers it.
//! The last action counts, whatever the clocks of the callers show.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use redlock_core::Series;

use super::{
    log::log_action,
    moment::{CONFIRMED_WITHIN, EARLY, LATE, moment_of},
};
use crate::{
    Action, ControlError, Overlap, TickReport, Trigger,
    job::{
        JobId,
        series::{CANCELS, MANUAL, PAUSES, STOPS},
    },
    replica::{ClaimRequest, Claims, Refusal, finish_noted},
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
