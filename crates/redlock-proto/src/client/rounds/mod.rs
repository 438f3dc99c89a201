//! Rounds of requests: what each is for, what has come of it, and what is still to come.

mod kind;
mod round;

use std::time::Duration;

use self::round::NodeProgress;
pub(super) use self::{
    kind::{Repeat, RoundKind},
    round::{Limit, Rest, Round},
};
use super::timers::TimerKey;
use crate::{Instant, Slab, membership::Baseline};

/// The rounds of which something is still to come, by number.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    rounds: Slab<Round>,
    /// The memory of what rounds had heard that are over, for the next ones.
    spare: Vec<Vec<NodeProgress>>,
}

impl Rounds {
    /// Returns the number that the next round will have.
    pub(super) fn next(&self) -> u64 {
        self.rounds.next()
    }

    /// Adds a round that asks `nodes` nodes, and returns its number.
    ///
    /// `started` has the moment of its start, and what the clocks showed then; `limit` has its time limit, and the
    /// timer of that.
    pub(super) fn add(
        &mut self,
        kind: RoundKind,
        started: (Instant, Baseline),
        nodes: usize,
        limit: (Duration, TimerKey),
    ) -> u64 {
        let spare = self.spare.pop().unwrap_or_default();
        let round = Round::new(kind, started, (nodes, spare), limit);
        self.rounds.add(round)
    }

    pub(super) fn get(&self, id: u64) -> Option<&Round> {
        self.rounds.get(id)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Round> {
        self.rounds.get_mut(id)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Round> {
        self.rounds.remove(id)
    }

    /// Removes a round of which nothing is needed any more.
    pub(super) fn forget(&mut self, id: u64) {
        if let Some(round) = self.remove(id)
            && self.spare.len() < MOST_SPARE
        {
            self.spare.push(round.into_spare());
        }
    }

    /// Returns how many there are.
    pub(super) const fn len(&self) -> usize {
        self.rounds.len()
    }

    /// Returns how many requests wait for their outcome, with one for each round that is kept though nothing is to come.
    pub(super) fn open_requests(&self) -> usize {
        let open = |round: &Round| round.open.max(usize::from(round.is_over()));
        self.rounds.values().map(open).sum()
    }

    /// Returns whether none is left that gives back what was taken, or says what came of a run.
    pub(super) fn are_clean(&self) -> bool {
        let is_cleanup = |round: &Round| round.is_limited() && round.kind.is_cleanup();
        !self.rounds.values().any(is_cleanup)
    }
}

/// The largest number of ended rounds whose memory is kept.
const MOST_SPARE: usize = 256;
