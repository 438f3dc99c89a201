use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};

use crate::{
    Missed, Outcome, Overlap, Trigger,
    backlog::Backlog,
    claim::Refusal,
    due::{Due, Progress},
    identity::JobId,
    job::Work,
    journal::Journal,
    replica::Replica,
    schedule::Schedule,
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
    /// Since when this replica has the job.
    pub(crate) added: DateTime<Utc>,
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
            Missed::All { max } => tasks.spawn(this.add_due(due, max)),
            // Of those that were passed over, whoever claims this one knows if another replica had them.
            _ => tasks.spawn(this.tick(due.tick, Trigger::Schedule)),
        }
    }

    /// Adds what is due to what is started one after the other.
    async fn add_due(self: Arc<Self>, due: Due, max: usize) {
        let turn = self.backlog.turn.lock().await;
        let mut ticks = self.schedule.between(due.after, due.tick, max).await;
        // A tick that came while a run went on here was not missed.
        if self.skips(due.tick) {
            let refusal = Refusal::bare(Outcome::Overlapping);
            self.refused(due.tick, Trigger::Schedule, refusal);
        } else {
            ticks.push(due.tick);
        }
        let begins = self.backlog.add(ticks, max);
        drop(turn);
        self.work_off(begins).await;
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

    /// Whether the tick is to be skipped because a run goes on here that was due or asked for.
    ///
    /// A run that makes up for another tick is the scheduler's own doing, and the tick waits for its turn.
    fn skips(&self, tick: DateTime<Utc>) -> bool {
        self.terms.overlap == Overlap::Skip
            && self.replica.tasks.is_running(self.id.name())
            && self.is_fresh(tick)
    }

    /// The time of day, as this replica has it.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.replica.clock.now()
    }

    /// Logs that no tick is left, unless the scheduler ends.
    pub(crate) fn say_that_it_ended(&self) {
        if !self.replica.tasks.is_draining() {
            let job = &**self.id.name();
            tracing::warn!(
                target: crate::TARGET, job,
                "its schedule has ended: no tick is left, and it is not started any more"
            );
        }
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
