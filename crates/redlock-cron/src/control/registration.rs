//! The registration of the jobs of a scheduler, so that the nodes know a job before its first tick.
//!
//! A registration is a claim of the present moment in a series of the job's record.
//! One of the replicas makes it: each looks first.

use std::time::Duration;

use chrono::SubsecRound;

use super::moment::moment_of;
use crate::{
    clock::lag,
    job::series::KNOWN,
    record::{JobRegistration, REGISTERED},
    replica::finish_noted,
    tick::{JobRunner, SHORT_WAIT, random_up_to},
};

impl JobRunner {
    /// Registers the job, unless a replica with the same settings did so within a day, and notes when to look again.
    pub(crate) async fn register(&self) {
        let pause = match self.is_registered().await {
            Some(true) => BETWEEN_LOOKS,
            Some(false) if self.claim_registration().await => BETWEEN_LOOKS,
            // Another replica was in the way, or too few nodes answered.
            _ => AFTER_FAILURE,
        };
        // At another time than other jobs and replicas.
        let pause = pause / 2 + random_up_to(pause);
        self.job.registration.look_after(pause);
    }

    /// Returns whether the job is registered with its present settings; `None` if too few nodes answered.
    async fn is_registered(&self) -> Option<bool> {
        let job = &self.job;
        let state = job.read(KNOWN).await?;
        let newest = JobRegistration::newest(&state, job.nodes_now());
        Some(newest.is_some_and(|newest| newest.is_of(job.fingerprint)))
    }

    /// Registers the job; returns whether a majority of the nodes remembers it.
    async fn claim_registration(&self) -> bool {
        let job = &self.job;
        let now = job.nodes_now().trunc_subsecs(3);
        let number = job.fingerprint.number();
        let number = (number, job.settings.ttl);
        let ask = moment_of(&job.id, KNOWN, number, SHORT_WAIT, now);
        match job.replica.claims.claim(ask).await {
            Ok(won) => {
                let next = job.schedule.next_after(now).map(|next| lag(now, next));
                let (next, text) = (next.unwrap_or_default(), job.registration.text());
                finish_noted(job.id.name(), won.claim, REGISTERED, next, Some(text)).await;
                true
            }
            Err(refusal) => {
                let (outcome, detail) = (refusal.outcome, refusal.detail.as_deref());
                tracing::debug!(target: crate::TARGET, job = &**job.id.name(), %outcome, detail, "not registered");
                false
            }
        }
    }
}

/// How often a replica looks whether a job is registered: the nodes may have lost their data.
const BETWEEN_LOOKS: Duration = Duration::from_secs(60 * 60);

const AFTER_FAILURE: Duration = Duration::from_secs(30);
