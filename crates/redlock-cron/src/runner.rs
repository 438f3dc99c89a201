use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};

use crate::{
    Outcome, claim::Refusal, due::Progress, identity::JobId, job::Work, journal::Journal,
    replica::Replica, schedule::Schedule, terms::Terms,
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
}

impl JobRunner {
    /// Deals with a wake-up at `wake`; what it starts goes on in a task.
    pub(crate) fn wake(self: &Arc<Self>, wake: DateTime<Utc>) {
        // Nothing panics while the lock is held.
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let due = progress.due(&self.schedule, wake);
        drop(progress);
        let Some(due) = due else { return };
        for tick in due.passed_over {
            self.refused(
                tick,
                Refusal::new(Outcome::TooLate, "a newer tick was due at the same wake-up"),
            );
        }
        self.replica.tasks.spawn(Arc::clone(self).tick(due.tick));
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
