//! Rounds of requests: what each is for, what has come of it, and what is still to come.

mod held_back;
mod kind;
mod request_error;
mod round;
mod seen;

use std::collections::BTreeMap;

pub use self::request_error::RequestError;
pub(super) use self::{held_back::HeldBack, kind::RoundKind, round::Round, seen::Seen};

/// The rounds of which something is still to come, by number.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    rounds: BTreeMap<u64, Round>,
    next: u64,
}

impl Rounds {
    /// Returns the number that the next round will have.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Adds a round; returns its number.
    pub(super) fn add(&mut self, round: Round) -> u64 {
        let id = self.next;
        self.next += 1;
        self.rounds.insert(id, round);
        id
    }

    pub(super) fn get(&self, id: u64) -> Option<&Round> {
        self.rounds.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Round> {
        self.rounds.get_mut(&id)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Round> {
        self.rounds.remove(&id)
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.rounds.len()
    }

    /// Returns how many requests wait for their outcome.
    pub(super) fn open_requests(&self) -> usize {
        self.rounds.values().map(Round::open).sum()
    }

    /// Returns whether none is left that gives back what was taken, or says what came of a run.
    pub(super) fn are_clean(&self) -> bool {
        let is_cleanup = |round: &Round| round.is_limited() && round.kind().is_cleanup();
        !self.rounds.values().any(is_cleanup)
    }
}
