//! The parts of a look that take a dozen questions for each job, and are looked at now and then.

use std::time::{Duration, Instant};

use redlock_core::Redlock;
use redlock_cron::{
    JobMemory, LoggedAction, SingletonScheduler, UnclaimedTicks, actions, chrono::Utc,
};

use super::{
    clock,
    jobs::{self, JobName},
    probe::ProbedNode,
    settings::NodeSettings,
};
use crate::snapshot::{ActionSnapshot, JobSnapshot};

/// The jobs and the actions as they were at the last look at them.
#[derive(Debug, Default)]
pub(super) struct SlowParts {
    pub(super) jobs: Vec<JobSnapshot>,
    pub(super) jobs_total: usize,
    /// Why they could not be looked for since then.
    pub(super) jobs_unknown: Option<&'static str>,
    pub(super) actions: Vec<ActionSnapshot>,
    pub(super) actions_unknown: Option<&'static str>,
    seen: Option<Instant>,
    /// Whether something was done to them since.
    is_due: bool,
}

impl SlowParts {
    /// Returns whether they were looked at.
    pub(super) const fn are_seen(&self) -> bool {
        self.seen.is_some()
    }

    /// Lets the next look ask for them.
    pub(super) const fn look_again(&mut self) {
        self.is_due = true;
    }

    /// Looks at them if it is time; if the nodes cannot be asked, they stay as they were.
    pub(super) async fn look(
        &mut self,
        client: &Redlock,
        places: &[ProbedNode],
        settings: &NodeSettings,
        most_jobs: usize,
        most_runs: usize,
    ) {
        let now = clock::now();
        let is_late = |at: Instant| now.duration_since(at) >= SLOW_EVERY;
        if self.is_due || self.seen.is_none_or(is_late) {
            match jobs::list(client, places, settings, most_jobs).await {
                Ok(listed) => {
                    let is_few = listed.jobs.len() <= MOST_WITH_MISSED;
                    let mut jobs = Vec::with_capacity(listed.jobs.len());
                    for (job, memory) in &listed.jobs {
                        let mut job = JobSnapshot::of(job, memory, most_runs);
                        if is_few {
                            job.missed = Some(missed(memory).await);
                        }
                        jobs.push(job);
                    }
                    (self.jobs, self.jobs_total) = (jobs, listed.total);
                    self.jobs_unknown = None;
                }
                Err(_) => self.jobs_unknown = Some(jobs::TOO_FEW),
            }
            match actions(client).await {
                Some(actions) => {
                    self.actions = actions.iter().map(ActionSnapshot::of).collect();
                    self.actions_unknown = None;
                }
                None => self.actions_unknown = Some("too few nodes say what operators did"),
            }
            // Only now: the viewer that takes the look may go away before.
            (self.seen, self.is_due) = (Some(now), false);
        }
    }

    /// Sets the next ticks of jobs by the schedulers of this process, which know more than the nodes.
    pub(super) fn schedule(&mut self, schedulers: &[SingletonScheduler]) {
        let now = Utc::now();
        for job in &mut self.jobs {
            let Ok(JobName { namespace, name }) = job.job.parse() else {
                continue;
            };
            let mut own = schedulers.iter();
            let own = own.find(|scheduler| scheduler.namespace() == namespace);
            if let Some(Ok(schedule)) = own.map(|scheduler| scheduler.schedule(&name)) {
                job.set_next(schedule.next_after(now));
            }
        }
    }
}

/// Returns how many due ticks no replica has claimed.
pub(crate) async fn missed(memory: &JobMemory) -> u64 {
    let unclaimed = memory.unclaimed().await;
    unclaimed.iter().map(UnclaimedTicks::ticks).sum()
}

impl ActionSnapshot {
    /// Returns an action for programs.
    pub fn of(action: &LoggedAction) -> Self {
        Self {
            at: action.at().to_rfc3339(),
            verb: action.verb().to_owned(),
            subject: action.subject().to_owned(),
            by: action.by().map(str::to_owned),
            reason: action.reason().map(str::to_owned),
        }
    }
}

/// The least time between two looks at the jobs and the actions.
pub(super) const SLOW_EVERY: Duration = Duration::from_secs(5);

/// The most jobs of which the ticks are counted that were not claimed.
const MOST_WITH_MISSED: usize = 100;
