//! Rounds of requests: what each is for, what has come of it, and what is still to come.

mod held_back;
mod kind;
mod request_error;
mod round;
mod seen;

pub use self::request_error::RequestError;
use self::round::Heard;
pub(super) use self::{held_back::HeldBack, kind::RoundKind, round::Round, seen::Seen};
use super::timers::TimerKey;
use crate::{Instant, membership::Baseline};

/// The rounds of which something is still to come, by number.
///
/// A number is a place and how often a round was added, so that it is found at once, and never taken for another's.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    places: Vec<Option<(u64, Round)>>,
    /// The places that are free.
    free: Vec<usize>,
    /// How many rounds there ever were.
    added: u64,
    /// The memory of what rounds had heard that are over, for the next ones.
    spare: Vec<Vec<Heard>>,
}

impl Rounds {
    /// Returns the number that the next round will have.
    pub(super) fn next(&self) -> u64 {
        let place = self.free.last().copied().unwrap_or(self.places.len());
        (self.added << PLACES) | place as u64
    }

    /// Adds a round of so many nodes that is started at this moment, at which the clocks were so, and that has this time
    /// limit; returns its number.
    pub(super) fn add(
        &mut self,
        kind: RoundKind,
        started: (Instant, Baseline),
        nodes: usize,
        limit: TimerKey,
    ) -> u64 {
        let spare = self.spare.pop().unwrap_or_default();
        let round = Round::new(kind, started, (nodes, spare), limit);
        let id = self.next();
        self.added += 1;
        match self.free.pop() {
            Some(place) => self.places[place] = Some((id, round)),
            None => self.places.push(Some((id, round))),
        }
        id
    }

    pub(super) fn get(&self, id: u64) -> Option<&Round> {
        let (known, round) = self.places.get(place(id))?.as_ref()?;
        (*known == id).then_some(round)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Round> {
        let (known, round) = self.places.get_mut(place(id))?.as_mut()?;
        (*known == id).then_some(round)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Round> {
        let slot = self.places.get_mut(place(id))?;
        let (_, round) = slot.take_if(|(known, _)| *known == id)?;
        self.free.push(place(id));
        if self.len() == 0 && self.places.len() > FEW {
            // Nothing stays of a crowd.
            self.places = Vec::new();
            self.free = Vec::new();
        }
        Some(round)
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
        self.places.len() - self.free.len()
    }

    /// Returns how many requests wait for their outcome, with one for each round that is kept though nothing is to come.
    pub(super) fn open_requests(&self) -> usize {
        let open = |round: &Round| round.open().max(usize::from(round.is_over()));
        self.iter().map(open).sum()
    }

    /// Returns whether none is left that gives back what was taken, or says what came of a run.
    pub(super) fn are_clean(&self) -> bool {
        let is_cleanup = |round: &Round| round.is_limited() && round.kind().is_cleanup();
        !self.iter().any(is_cleanup)
    }

    fn iter(&self) -> impl Iterator<Item = &Round> {
        self.places.iter().flatten().map(|(_, round)| round)
    }
}

const fn place(id: u64) -> usize {
    (id & LAST_PLACE) as usize
}

/// How many bits of a number say the place, and how many how often: both are more than any round could wait for.
const PLACES: u32 = 32;
const LAST_PLACE: u64 = (1 << PLACES) - 1;

/// So many places are kept for ever.
const FEW: usize = 1_024;

/// Of so many rounds that are over the memory is kept.
const MOST_SPARE: usize = 256;
