use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};

use crate::{
    Missed, Outcome, Overlap, Trigger, backlog::Backlog, claim::Refusal, due::Progress,
    identity::JobId, job::Work, journal::Journal, replica::Replica, schedule::Schedule,
    terms::Terms,
};

/// One job on one replica: turns wake-ups into runs, and both into reports.
///
/// What becomes of a tick is in `course`, and of a run in `execution`.
pub(crate) struct JobRunner {
    pub(crate) replica: Arc<Replica>,
    pub(crate) id: JobId,
    pub(crate) schedule: Schedule,
    pub(crate) terms: Terms,
    pub(crate) work: Work,
    pub(crate) progress: Mutex<Progress>,
    pub(crate) journal: Journal,
    pub(crate) backlog: Backlog,
}

impl JobRunner {
    /// Deals with a wake-up at `wake`; what it starts goes on in a task.
    pub(crate) fn wake(self: &Arc<Self>, wake: DateTime<Utc>) {
        let due = self.progress().due(&self.schedule, wake);
        let Some(due) = due else { return };
        let (this, tasks) = (Arc::clone(self), &self.replica.tasks);
        match self.terms.missed {
            // A tick that came while a run went on here was not missed.
            Missed::All { .. } if self.skips(due.tick) => {
                let refusal = Refusal::bare(Outcome::Overlapping);
                self.refused(due.tick, Trigger::Schedule, refusal);
            }
            Missed::All { max } => {
                let ticks = due.passed_over.into_iter().chain([due.tick]);
                let begins = self.backlog.add(ticks, max);
                tasks.spawn(this.work_off(begins));
            }
            // Of those that were passed over, whoever claims this one knows if another replica had them.
            _ => tasks.spawn(this.tick(due.tick, Trigger::Schedule)),
        }
    }

    /// By how much the clock was set back since the last wake-up.
    pub(crate) fn set_back_by(&self) -> Duration {
        let now = self.now();
        self.progress().set_back_by(now)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // Nothing panics while the lock is held.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the tick is to be skipped because a run goes on here.
    fn skips(&self, tick: DateTime<Utc>) -> bool {
        self.terms.overlap == Overlap::Skip
            && self.replica.tasks.is_running(self.id.name())
            && self.is_fresh(tick)
    }

    /// The time of day, as this replica has it.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.replica.clock.now()
    }

    /// When to wake up next, or `None` if there is nothing more to wake up for.
    pub(crate) fn next_after(&self, wake: DateTime<Utc>) -> Option<DateTime<Utc>> {
        if self.replica.tasks.is_draining() {
            None
        } else {
            self.schedule.next_after(wake)
        }
    }
}
