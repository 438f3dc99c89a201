//! The dead-man's switch of a job: says when no run has ended well for too long, and when one has again.
//!
//! Any replica that is up judges by what the nodes remember, so also the first that comes up after all were gone.
//! A change of the state is claimed like a moment, so one replica says it.

use std::{sync::Arc, time::Duration};

use redlock_core::{RunRecord, Tick};

use super::{inspect::runs_of, moment::moment_of};
use crate::{
    clock::{lag, to_instant},
    job::series::SUCCESSES,
    record::{Conclusion, KeptRuns, SwitchState, ended_at},
    replica::finish,
    tick::{JobRunner, SHORT_WAIT},
};

impl JobRunner {
    /// Looks at the dead-man's switch if the job has one and a look is due; the look goes on in a task.
    pub(crate) fn look_for_success(self: &Arc<Self>) {
        let Some(within) = self.job.settings.expect_success_within else {
            return;
        };
        if !self.job.ending.is_draining() && self.job.looks.begin() {
            let this = Arc::clone(self);
            let look = async move {
                let pause = this.look_at_switch(within).await;
                this.job.looks.end(pause);
            };
            self.job.replica.tasks.spawn(look);
        }
    }

    /// Looks at the switch, says what has changed, and returns how long to wait for the next look.
    async fn look_at_switch(&self, within: Duration) -> Duration {
        let Some((concluded, kept)) = self.conclude(within, None).await else {
            return AFTER_FAILURE;
        };
        if self.job.ending.is_draining() {
            return AFTER_FAILURE;
        }
        #[cfg(feature = "metrics")]
        {
            let (observer, job) = (&self.job.replica.observer, self.job.id.name());
            observer.measure(|meter| meter.measure_overdue(job, concluded.is_overdue()));
        }
        match concluded {
            Conclusion::Until(end) => {
                let left = lag(self.job.nodes_now(), end);
                // Before the nodes forget runs that this replica has not seen.
                left.min(kept.span / 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
            }
            Conclusion::Overdue => (within / 4).clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
            Conclusion::Changed(state) | Conclusion::Fading(state) => {
                self.record(within, state, concluded).await;
                SHORTEST_PAUSE
            }
        }
    }

    /// Makes the nodes remember the state of this conclusion, and says it if it has changed, unless another replica has.
    async fn record(&self, within: Duration, state: SwitchState, concluded: Conclusion) {
        let (id, claims) = (&self.job.id, &self.job.replica.claims);
        let ask = |now| {
            moment_of(
                id,
                SUCCESSES,
                (state.number(), self.job.settings.ttl),
                SHORT_WAIT,
                now,
            )
        };
        let ahead = claims.ahead().await.unwrap_or_default();
        let Ok((won, _)) = claims.claim_now(None, ahead, ask).await else {
            // The next look finds whether another replica was in the way.
            return;
        };
        // The lock is held, so no other replica says anything now.
        let again = self.conclude(within, Some(won.claim.tick())).await;
        let again = again.map(|(again, _)| again);
        let is_so = again == Some(concluded) && won.claim.lease().is_held();
        let word = if is_so {
            state.as_str()
        } else {
            RunRecord::UNSTARTED
        };
        if is_so && concluded == Conclusion::Changed(state) {
            self.say(within, state);
        }
        finish(id.name(), won.claim, word).await;
    }

    fn say(&self, within: Duration, state: SwitchState) {
        let job = &**self.job.id.name();
        let namespace = &**self.job.replica.namespace.name();
        let success = |ended: Option<Tick>| ended.map(to_instant).map(tracing::field::display);
        let within_s = within.as_secs_f64();
        match state {
            SwitchState::Overdue(last) => tracing::error!(
                target: crate::TARGET, job_namespace = namespace, job, last_success = success(last), within_s,
                "overdue: no run has ended well within the expected time"
            ),
            SwitchState::Expected(Some(last)) => tracing::info!(
                target: crate::TARGET, job_namespace = namespace, job, last_success = success(Some(last)),
                "no longer overdue: a run has ended well"
            ),
            SwitchState::Expected(None) | SwitchState::ExpectedSince(_) => {}
        }
    }

    /// Returns how the switch stands, without the claim of the moment `own`, and the runs that the nodes have kept; `None` if
    /// too few nodes have answered.
    async fn conclude(
        &self,
        within: Duration,
        own: Option<Tick>,
    ) -> Option<(Conclusion, KeptRuns)> {
        let job = &self.job;
        let record = job.record().await?;
        let (runs, state) = (runs_of(&record, Some(true)), record.of(SUCCESSES));
        let good = runs.iter().filter(|run| run.outcome() == Some("ok"));
        let success = good.map(ended_at).max();
        let now = job.nodes_now();
        let kept = KeptRuns::of(&runs, now);
        let state = SwitchState::newest(state, own);
        let last = job.looks.last_success(success, state, kept, now);
        Some((Conclusion::of(last, state, kept, within, now), kept))
    }
}

/// How long to wait between two looks: at the least, also for the end of a lapse, and at the most.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long to wait if too few nodes have answered.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
