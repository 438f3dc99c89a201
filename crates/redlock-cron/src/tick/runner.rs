use std::{
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{Redlock, Slots};

use super::{
    backlog::Backlog,
    backoff::Backoff,
    found::Found,
    progress::Progress,
    turns::Turns,
    undecided::{Ticks, Undecided},
};
use crate::{
    Missed, Outcome, Overlap, SetupError, SingletonJob, Trigger,
    job::{Condition, Fingerprint, JobId, JobSettings, Work, early},
    record::{Journal, guarded},
    replica::{Ending, Refusal, Replica},
    schedule::Schedule,
};

/// One job on one replica: turns wake-ups into runs, and both into reports.
///
/// What becomes of a tick is in `course` and `start`, and of a run in `execution`.
pub(crate) struct JobRunner {
    pub(crate) replica: Arc<Replica>,
    pub(crate) id: JobId,
    pub(crate) schedule: Schedule,
    pub(crate) settings: JobSettings<Duration>,
    /// The slots of which each run has one, if a limited number of runs may overlap.
    pub(crate) slots: Option<Slots>,
    /// Stands for the schedule and the settings.
    pub(crate) fingerprint: Fingerprint,
    pub(crate) work: Work,
    pub(crate) condition: Option<Condition>,
    /// Since when this replica has the job, by the nodes' clocks as far as they were known.
    pub(crate) added: DateTime<Utc>,
    pub(crate) progress: Mutex<Progress>,
    pub(crate) journal: Journal,
    pub(crate) backlog: Backlog,
    /// The run that went on when this replica got the job, as long as no later one is known.
    pub(crate) open_at_first: Mutex<Option<Found>>,
    /// The missed tick that is made up for, up to the newest of the ticks after it that were skipped.
    pub(crate) stands_for: Mutex<Option<RangeInclusive<DateTime<Utc>>>>,
    pub(crate) turns: Turns,
    pub(crate) undecided: Arc<Ticks>,
    pub(crate) backoff: Backoff,
    pub(crate) ending: Ending,
}

impl JobRunner {
    /// Checks the job, which counts ticks from now on.
    pub(crate) fn new(replica: &Arc<Replica>, job: SingletonJob) -> Result<Self, SetupError> {
        let id = JobId::new(replica.namespace.clone(), &job.name)?;
        let schedule = job.plan.schedule()?;
        let now = replica.nodes_now();
        if schedule.next_after(now).is_none() && schedule.latest_at(now).is_none() {
            return Err(SetupError::never_fires(&job.plan));
        }
        let redlock = &replica.claims.redlock;
        let settings = job.settings.in_force(&schedule, redlock)?;
        let slots = match settings.overlap {
            Overlap::UpTo(most) => Some(slots(redlock, &id, most)?),
            _ => None,
        };
        let progress = Mutex::new(Progress::from(now, &schedule));
        Ok(Self {
            replica: Arc::clone(replica),
            ending: replica.tasks.ending(),
            id,
            schedule,
            fingerprint: Fingerprint::of(&job.plan, &settings, early(redlock)),
            slots,
            settings,
            work: job.work,
            condition: job.condition,
            added: now,
            progress,
            journal: Journal::default(),
            backlog: Backlog::default(),
            open_at_first: Mutex::default(),
            stands_for: Mutex::default(),
            turns: Turns::default(),
            undecided: Arc::default(),
            backoff: Backoff::default(),
        })
    }

    /// Takes the place of the job `before`, of which nothing is started any more; its runs in flight go on.
    ///
    /// This job deals with the ticks on which `before` has not decided.
    pub(crate) fn take_over(&mut self, before: &Self) {
        let late = TimeDelta::from_std(self.settings.start_within).unwrap_or(TimeDelta::MAX);
        let oldest = self.added.checked_sub_signed(late);
        let oldest = oldest.unwrap_or(DateTime::<Utc>::MIN_UTC);
        // Under the lock under which `before` notes the ticks that it finds.
        let found = before.progress();
        let since = before.undecided.before(found.next(), oldest, self.added);
        drop(found);
        self.progress = Mutex::new(Progress::from(since, &self.schedule));
        // Only now, because a task that learns of it forgets its tick. Both jobs may ask for a tick until then, and the
        // nodes grant it once.
        self.ending = self.replica.tasks.hand_over(&before.ending);
    }

    /// Returns the first tick that was not found yet.
    #[cfg(feature = "test-util")]
    pub(crate) fn next_tick(&self) -> Option<DateTime<Utc>> {
        self.progress().next()
    }

    /// Returns whether this replica has yet to ask for a tick that is due at `instant` or was before, `now`.
    #[cfg(feature = "test-util")]
    pub(crate) fn is_asking(&self, instant: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        // The longest time after a tick until it was asked for, and the nodes have answered.
        let longest = self.settings.spread + Duration::from_millis(100);
        let longest = TimeDelta::from_std(longest).unwrap_or(TimeDelta::zero());
        self.undecided.has_any(now - longest..=instant)
    }

    /// Sets the metric of the next tick; there is none once nothing is started any more.
    #[cfg(feature = "metrics")]
    pub(crate) fn tell_next(&self) {
        let (observer, job) = (&self.replica.observer, self.id.name());
        let next = self.progress().next();
        observer.tell_next(job, next);
        // Checked last, so that a job that is removed meanwhile leaves no such tick in the metric.
        if self.ending.is_draining() {
            observer.tell_next(job, None);
        }
    }

    /// Returns whether a wake-up now has anything to deal with.
    pub(crate) fn is_due(&self) -> bool {
        let now = self.nodes_now();
        self.progress().is_due(now)
    }

    /// Deals with a wake-up; what it starts goes on in a task.
    pub(crate) fn wake(self: &Arc<Self>) {
        let now = self.nodes_now();
        let mut progress = self.progress();
        let Some(due) = progress.due(&self.schedule, now) else {
            return;
        };
        let undecided = due.ticks.iter();
        let undecided = undecided.map(|tick| Undecided::new(&self.undecided, *tick));
        let undecided: Vec<_> = undecided.collect();
        drop(progress);
        self.say_if_it_ended();
        let tasks = &self.replica.tasks;
        if let Missed::All { max } = self.settings.missed {
            return tasks.spawn(Arc::clone(self).add_due(due.after, undecided, max));
        }
        // The replica that claims the next tick reports the skipped ones; the nodes tell it which were claimed.
        for undecided in undecided {
            tasks.spawn(Arc::clone(self).tick(undecided, Trigger::Schedule));
        }
    }

    /// Adds the ticks that are due to the backlog.
    async fn add_due(self: Arc<Self>, after: DateTime<Utc>, undecided: Vec<Undecided>, max: usize) {
        let turn = self.backlog.turn.lock().await;
        for (number, undecided) in undecided.into_iter().enumerate() {
            let tick = undecided.tick;
            let until = self.until(tick, Duration::ZERO);
            if let Err(refusal) = self.unless_draining(until).await {
                self.refused(tick, Trigger::Schedule, refusal);
                continue;
            }
            let mut ticks = match number {
                0 => self.schedule.between(after, tick, max).await,
                _ => Vec::new(),
            };
            // A tick that came while a run went on here was not missed.
            if self.skips(tick) {
                let refusal = Refusal::bare(Outcome::Overlapping);
                self.refused(tick, Trigger::Schedule, refusal);
            } else {
                ticks.push(tick);
            }
            if self.backlog.add(ticks, max) {
                let work = Arc::clone(&self).work_off(true);
                self.replica.tasks.spawn(work);
            }
        }
        drop(turn);
    }

    /// Notes that the nodes' time is not the expected one.
    pub(crate) fn clock_was_set(&self) {
        let now = self.nodes_now();
        self.progress().set_right(now, &self.schedule);
    }

    /// Returns since when ticks are found by wake-ups.
    pub(crate) fn found_since(&self) -> DateTime<Utc> {
        self.progress().since()
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // Nothing panics while the lock is held.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the tick is to be skipped because a run goes on here that was due or asked for.
    ///
    /// A run that makes up for another tick is the scheduler's own doing, and the tick waits for its turn.
    fn skips(&self, tick: DateTime<Utc>) -> bool {
        self.settings.overlap == Overlap::Skip
            && self.replica.tasks.is_running_in_time(self.id.name())
            && self.is_fresh(tick)
    }

    /// Returns whether the job's condition lets this replica ask for a tick.
    pub(crate) fn wants(&self, tick: DateTime<Utc>) -> bool {
        let Some(condition) = &self.condition else {
            return true;
        };
        guarded(|| condition(tick)).unwrap_or_else(|_| {
            let job = &**self.id.name();
            tracing::error!(target: crate::TARGET, job, %tick, "the job's condition panicked");
            false
        })
    }

    /// Returns the time of day, as this replica has it.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.replica.clock.now()
    }

    /// Logs it if no tick is left, unless the scheduler ends.
    pub(crate) fn say_if_it_ended(&self) {
        if !self.ending.is_draining() && self.progress().has_ended() {
            let job = &**self.id.name();
            if self.schedule.is_once() {
                tracing::debug!(target: crate::TARGET, job, "its one instant has come");
                return;
            }
            tracing::warn!(
                target: crate::TARGET, job,
                "its schedule has ended: no later tick is left, and it is not started any more"
            );
        }
    }

    /// Logs each step of its pattern that does not mean what it says, such as one of 25 minutes.
    pub(crate) fn say_doubts(&self) {
        for doubt in self.schedule.doubts() {
            let job = &**self.id.name();
            tracing::warn!(target: crate::TARGET, job, doubt, "its pattern has a step that does not mean what it says");
        }
    }

    /// Returns the time of day by the nodes' clocks; see [`Replica::nodes_now`].
    pub(crate) fn nodes_now(&self) -> DateTime<Utc> {
        self.replica.nodes_now()
    }
}

fn slots(redlock: &Redlock, id: &JobId, most: usize) -> Result<Slots, SetupError> {
    let slots = redlock.slots(id.slots_key(), most);
    slots.map_err(|error| SetupError::misuse("overlap", error.to_string()))
}
