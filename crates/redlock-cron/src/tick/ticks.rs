//! The ticks of a job on this replica: which are due, which are undecided, and which were missed and wait.

use std::{collections::BTreeSet, ops::RangeInclusive, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;

use super::{context::JobContext, due_ticks::DueTicks, run_before_start::OpenRun};
use crate::{Missed, Overlap, clock::lag, schedule::Schedule};

/// The ticks of a job on this replica.
pub(crate) struct JobTicks {
    pub(crate) progress: Mutex<DueTicks>,
    undecided: Arc<UndecidedTicks>,
    pub(crate) backlog: TickBacklog,
    pub(super) open_run: OpenRun,
    /// The missed tick that is made up for, up to the newest of the ticks after it that were skipped.
    stands_for: Mutex<Option<RangeInclusive<DateTime<Utc>>>>,
}

impl JobTicks {
    /// Begins with the ticks after `now`.
    pub(super) fn new(now: DateTime<Utc>, schedule: &Schedule) -> Self {
        Self {
            progress: Mutex::new(DueTicks::from(now, schedule)),
            undecided: Arc::default(),
            backlog: TickBacklog::default(),
            open_run: OpenRun::default(),
            stands_for: Mutex::default(),
        }
    }

    /// Begins with the ticks on which `before` has not decided, of a job that is replaced by `job`.
    pub(super) fn taken_over(before: &Self, job: &JobContext) -> Self {
        let late = TimeDelta::from_std(job.settings.start_within).unwrap_or(TimeDelta::MAX);
        let oldest = job.added.checked_sub_signed(late);
        let oldest = oldest.unwrap_or(DateTime::<Utc>::MIN_UTC);
        // Under the lock under which `before` notes the ticks that it finds.
        let found = before.progress.lock();
        let since = before.undecided.before(found.next(), oldest, job.added);
        drop(found);
        Self::new(since, &job.schedule)
    }

    /// Returns the ticks that wake-ups now find, and the instant after which ticks before them are due as well.
    pub(crate) fn due(
        &self,
        schedule: &Schedule,
        now: DateTime<Utc>,
    ) -> Option<(DateTime<Utc>, Vec<UndecidedTick>)> {
        let mut progress = self.progress.lock();
        let (ticks, after) = progress.due(schedule, now)?;
        // Under the lock, so that a job that takes over finds each tick in the one place or the other.
        let undecided = ticks.iter().map(|tick| self.undecided(*tick));
        Some((after, undecided.collect()))
    }

    /// Notes that this replica has not decided yet whether it starts a tick.
    pub(crate) fn undecided(&self, tick: DateTime<Utc>) -> UndecidedTick {
        self.undecided.0.lock().push(tick);
        UndecidedTick {
            all: Arc::clone(&self.undecided),
            tick,
        }
    }

    /// Returns whether this replica has yet to ask for a tick that is due, or looks for ticks to make up for.
    pub(crate) fn are_undecided(&self, job: &JobContext) -> bool {
        let is_due = !self.undecided.0.lock().is_empty();
        is_due || matches!(job.settings.missed, Missed::All { .. }) && !self.backlog.is_idle()
    }

    /// Returns whether this replica has yet to ask for a tick in this range.
    #[cfg(feature = "test-util")]
    pub(super) fn has_undecided(&self, within: RangeInclusive<DateTime<Utc>>) -> bool {
        let ticks = self.undecided.0.lock();
        ticks.iter().any(|tick| within.contains(tick))
    }

    /// Returns whether it makes sense to try again to claim a tick for which there was no majority.
    pub(super) fn is_worth_waiting_for(&self, job: &JobContext, tick: DateTime<Utc>) -> bool {
        let in_time = lag(tick, job.nodes_now()) < job.settings.catch_up_window;
        match job.settings.missed {
            // The newer one stands for it.
            Missed::Skip | Missed::Latest => in_time && self.is_newest(job, tick),
            Missed::All { .. } => in_time,
        }
    }

    /// Returns whether no later tick takes its place.
    pub(super) fn stands_for_itself(&self, job: &JobContext, tick: DateTime<Utc>) -> bool {
        let each_counts = matches!(job.settings.missed, Missed::All { .. });
        each_counts || job.settings.overlap == Overlap::Wait || self.is_newest(job, tick)
    }

    /// Returns whether no later tick is due that takes its place.
    pub(super) fn is_newest(&self, job: &JobContext, tick: DateTime<Utc>) -> bool {
        let due = job.schedule.latest_at(job.nodes_now());
        due.is_none_or(|due| due <= tick || self.is_for_skipped(tick, due))
    }

    /// Returns whether the tick is the newest that was missed, and those after it up to `due` were skipped, or are being.
    fn is_for_skipped(&self, tick: DateTime<Utc>, due: DateTime<Utc>) -> bool {
        let range = self.stands_for.lock();
        let range = range.as_ref().filter(|range| *range.start() == tick);
        range.is_some_and(|range| due <= *range.end() || self.open_run.may_keep_off(due))
    }

    /// Notes that `newest` is the missed tick that is made up for, up to `skipped`, the newest of the ticks after it that were
    /// skipped.
    pub(super) fn make_up_for(&self, newest: DateTime<Utc>, skipped: Option<DateTime<Utc>>) {
        *self.stands_for.lock() = skipped.map(|skipped| newest..=skipped);
    }
}

/// A tick of which this replica has not decided yet whether it starts it.
#[must_use = "it is decided when this is dropped"]
pub(crate) struct UndecidedTick {
    all: Arc<UndecidedTicks>,
    pub(super) tick: DateTime<Utc>,
}

/// The ticks of a job that are undecided.
#[derive(Debug, Default)]
pub(super) struct UndecidedTicks(Mutex<Vec<DateTime<Utc>>>);

impl UndecidedTicks {
    /// Returns the newest instant before all undecided ticks and `next`, but `latest` at most.
    ///
    /// `next` is not among the undecided ticks yet; ticks before `oldest` do not count.
    /// A job that begins at this instant deals with all these ticks.
    pub(super) fn before(
        &self,
        next: Option<DateTime<Utc>>,
        oldest: DateTime<Utc>,
        latest: DateTime<Utc>,
    ) -> DateTime<Utc> {
        let ticks = self.0.lock();
        let ticks = ticks.iter().copied().chain(next);
        let ticks = ticks.filter(|tick| *tick >= oldest);
        let before = ticks.map(|tick| tick - TimeDelta::milliseconds(1));
        before.fold(latest, DateTime::min)
    }
}

impl Drop for UndecidedTick {
    fn drop(&mut self) {
        let mut ticks = self.all.0.lock();
        if let Some(place) = ticks.iter().position(|tick| *tick == self.tick) {
            ticks.swap_remove(place);
        }
    }
}

/// The ticks of a job with [`Missed::All`] that are due, and are started one after another, the oldest first.
///
/// No task may begin to work on them before it is [opened](Self::open).
#[derive(Debug, Default)]
pub(crate) struct TickBacklog {
    state: Mutex<BacklogState>,
    /// Held while a task looks for ticks to add, so that no tick is started before an older one is known.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct BacklogState {
    ticks: BTreeSet<DateTime<Utc>>,
    /// Whether a task may begin to work on them, because none does.
    is_free: bool,
}

impl TickBacklog {
    /// Adds ticks, keeps the newest `most`, and returns whether the caller must begin to work on them.
    #[must_use = "nobody works on the ticks otherwise"]
    pub(crate) fn add(&self, ticks: impl IntoIterator<Item = DateTime<Utc>>, most: usize) -> bool {
        let mut state = self.state.lock();
        state.ticks.extend(ticks);
        while state.ticks.len() > most {
            state.ticks.pop_first();
        }
        state.begin()
    }

    /// Lets work begin after the ticks missed before were added; returns whether the caller must begin it.
    #[must_use = "nobody works on the ticks otherwise"]
    pub(crate) fn open(&self) -> bool {
        let mut state = self.state.lock();
        state.is_free = true;
        state.begin()
    }

    /// Returns the oldest tick; none ends the work.
    pub(crate) fn oldest(&self) -> Option<DateTime<Utc>> {
        let mut state = self.state.lock();
        let oldest = state.ticks.first().copied();
        state.is_free = oldest.is_none();
        oldest
    }

    /// Takes all ticks out, in order, and ends the work.
    pub(crate) fn take(&self) -> BTreeSet<DateTime<Utc>> {
        let mut state = self.state.lock();
        state.is_free = true;
        std::mem::take(&mut state.ticks)
    }

    /// Returns whether it was opened, and no tick is in it.
    fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.is_free && state.ticks.is_empty()
    }

    /// Removes a tick that was dealt with.
    pub(crate) fn remove(&self, tick: DateTime<Utc>) {
        self.state.lock().ticks.remove(&tick);
    }
}

impl BacklogState {
    fn begin(&mut self) -> bool {
        let begins = self.is_free && !self.ticks.is_empty();
        self.is_free &= !begins;
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn one_works_on_it_from_its_opening_on_and_until_it_is_empty() {
        let backlog = TickBacklog::default();
        assert!(!backlog.add([at(5)], 9));
        assert!(!backlog.add([at(1), at(2)], 9));
        assert!(backlog.open());
        for second in [1, 2, 5] {
            assert_eq!(backlog.oldest(), Some(at(second)));
            assert!(!backlog.add([at(second)], 9));
            backlog.remove(at(second));
        }
        assert_eq!(backlog.oldest(), None);
        assert!(backlog.add([at(7)], 9));
        assert!(!backlog.add([at(8)], 9));
    }

    #[test]
    fn of_too_many_the_newest_stay() {
        let backlog = TickBacklog::default();
        assert!(!backlog.add((0..100).map(at), 3));
        assert!(backlog.open());
        assert_eq!(backlog.oldest(), Some(at(97)));
    }
}
