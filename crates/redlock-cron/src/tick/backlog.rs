//! The ticks of a job with `Missed::All`, which are started one after another, the oldest first.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, Utc};

/// Ticks that are due, and have not been dealt with.
#[derive(Debug)]
pub(crate) struct TickBacklog {
    state: Mutex<BacklogState>,
    /// Held while a task looks for ticks to add, so that no tick is started before an older one is known.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct BacklogState {
    ticks: BTreeSet<DateTime<Utc>>,
    working: bool,
}

impl Default for TickBacklog {
    /// Makes a backlog without ticks, on which no task may begin to work: see [`open`](TickBacklog::open).
    fn default() -> Self {
        Self {
            state: Mutex::new(BacklogState {
                ticks: BTreeSet::new(),
                working: true,
            }),
            turn: tokio::sync::Mutex::default(),
        }
    }
}

impl TickBacklog {
    /// Adds ticks, keeps the newest `most`, and returns whether the caller must begin to work on them.
    #[must_use = "nobody works on the ticks otherwise"]
    pub(crate) fn add(&self, ticks: impl IntoIterator<Item = DateTime<Utc>>, most: usize) -> bool {
        let mut state = self.state();
        state.ticks.extend(ticks);
        while state.ticks.len() > most {
            state.ticks.pop_first();
        }
        state.begin()
    }

    /// Lets work begin after the ticks missed before were added; returns whether the caller must begin it.
    #[must_use = "nobody works on the ticks otherwise"]
    pub(crate) fn open(&self) -> bool {
        let mut state = self.state();
        state.working = false;
        state.begin()
    }

    /// Returns the oldest tick; none ends the work.
    pub(crate) fn oldest(&self) -> Option<DateTime<Utc>> {
        let mut state = self.state();
        let oldest = state.ticks.first().copied();
        state.working = oldest.is_some();
        oldest
    }

    /// Takes all ticks out, in order, and ends the work.
    pub(crate) fn take(&self) -> BTreeSet<DateTime<Utc>> {
        let mut state = self.state();
        state.working = false;
        std::mem::take(&mut state.ticks)
    }

    /// Removes a tick that was dealt with.
    pub(crate) fn remove(&self, tick: DateTime<Utc>) {
        self.state().ticks.remove(&tick);
    }

    fn state(&self) -> MutexGuard<'_, BacklogState> {
        // Nothing panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BacklogState {
    fn begin(&mut self) -> bool {
        let begins = !self.working && !self.ticks.is_empty();
        self.working |= begins;
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
