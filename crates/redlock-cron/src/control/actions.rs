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
        series::{BACKFILLS, CANCELS, MANUAL, PAUSES, STOPS},
    },
    record::{BackfillEntry, CANCELLED},
    replica::{ClaimRequest, Claims, Refusal, finish_noted},
    tick::{JobRunner, PAUSED, RESUMED, SHORT_WAIT, Start},
};

/// A command of an operator about a job, whose moment the nodes remember.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OperatorCommand {
    /// Keeps all replicas from starting the job.
    Pause,
    /// Lets all replicas start the job.
    Resume,
    /// Ends the runs that go on.
    Stop,
    /// Ends the backfill: the nodes remember a later one, of no ticks.
    CancelBackfill,
}

impl OperatorCommand {
    /// Returns the series of its moments, the number and the word of their records, and its verb in the log of actions.
    fn parts(self) -> (Series, u64, &'static str, &'static str) {
        match self {
            Self::Pause => (PAUSES, PAUSED, "paused", "pause"),
            Self::Resume => (PAUSES, RESUMED, "resumed", "resume"),
            Self::Stop => (STOPS, 0, "stopped", "stop"),
            Self::CancelBackfill => (BACKFILLS, BackfillEntry::CANCELLED, CANCELLED, "cancel"),
        }
    }

    /// Makes a majority of the nodes remember the present moment, with the action's name and reason.
    pub(super) async fn remember(
        self,
        claims: &Claims,
        id: &JobId,
        ttl: Duration,
        action: &Action,
    ) -> Result<(), ControlError> {
        let until = action.until.filter(|_| self == Self::Pause);
        if let Some(until) = until
            && until <= claims.clock.now() - claims.ahead().await.unwrap_or_default()
        {
            let why = "the end of the pause is over, by the nodes' clocks; nothing was done";
            return Err(ControlError::invalid_range(id.name(), why));
        }
        let (series, number, word, verb) = self.parts();
        let ask = |now| moment_of(id, series, (number, ttl), CONFIRMED_WITHIN, now);
        let claimed = claims.claim_now(None, TimeDelta::zero(), ask).await;
        let (won, moment) = claimed.map_err(|refusal| {
            let why = refusal.why();
            let message = format!("no majority has confirmed that it is {word}; try again: {why}");
            ControlError::unconfirmed(id.name(), message)
        })?;
        let lasts = until.and_then(|until| (until - moment).to_std().ok());
        let (lasts, note) = (lasts.unwrap_or_default(), action.to_note());
        finish_noted(id.name(), won.claim, word, lasts, note.as_deref()).await;
        let job = id.to_string();
        if let Err(error) = log_action(&claims.redlock, verb, &job, action).await {
            tracing::warn!(target: crate::TARGET, job, error = error.to_string(), "done, and not in the log of actions");
        }
        Ok(())
    }
}

impl JobRunner {
    /// Carries the command out, with the operator's name, a reason, and the end of a pause.
    pub(crate) async fn command(
        &self,
        command: OperatorCommand,
        action: &Action,
    ) -> Result<(), ControlError> {
        let (job, claims) = (&self.job, &self.job.replica.claims);
        command
            .remember(claims, &job.id, job.settings.ttl, action)
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
        Ok(Start::first(won, tick, Trigger::Manual))
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
