//! What is to be checked.

use std::fmt;

use super::{
    LedgerMutation,
    record::{RANGE, TICKS},
    state::ACTORS,
};
use crate::{InvalidScope, variants::variants};

/// A check of the decisions about one job's ticks.
///
/// ```
/// use redlock_model::{LedgerCheck, LedgerMutation, LedgerRole::{Backfill, Retry, Schedule}};
///
/// // Ticks 1 and 2 may be backfilled, and one run may be cut short.
/// let check = LedgerCheck::new(&[Schedule, Retry, Backfill], 1).unwrap().backfill(1, 2).unwrap();
/// assert!(check.run().holds());
/// let broken = check.mutation(LedgerMutation::BackfillUnseen).run();
/// println!("{}", broken.trace().unwrap());
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is checked until it is run"]
pub struct LedgerCheck {
    pub(super) roles: [Option<LedgerRole>; ACTORS],
    pub(super) cuts: u8,
    /// The first and the last tick of each backfill that may be asked for.
    pub(super) ranges: [Option<(u8, u8)>; MOST_BACKFILLS],
    /// How many runs may be asked for.
    pub(super) requests: u8,
    pub(super) mutation: Option<LedgerMutation>,
}

variants! {
    /// The work of a replica.
    pub enum LedgerRole: "role" {
        /// It claims ticks that are due or were missed, and runs them.
        Schedule => "schedule",
        /// It runs the newest tick again if a run was cut short.
        Retry => "retry",
        /// It runs the ticks of backfills.
        Backfill => "backfill",
        /// It runs the job as it was requested.
        Request => "request",
    }
}

impl LedgerCheck {
    /// A check with these replicas, 1 to 4, of whose runs so many may be lost or crash, 3 at most.
    ///
    /// # Errors
    ///
    /// [`InvalidScope`] if a number is out of range.
    pub fn new(roles: &[LedgerRole], cuts: u8) -> Result<Self, InvalidScope> {
        if !(1..=ACTORS).contains(&roles.len()) || cuts > MOST_CUTS {
            let count = roles.len();
            let message = format!(
                "there are from 1 to {ACTORS} replicas and up to {MOST_CUTS} runs that are cut short, not {count} and {cuts}"
            );
            return Err(InvalidScope::new(message));
        }
        let mut sorted = [None; ACTORS];
        for (place, role) in sorted.iter_mut().zip(roles) {
            *place = Some(*role);
        }
        sorted[..roles.len()].sort();
        Ok(Self {
            roles: sorted,
            cuts,
            ranges: [None; MOST_BACKFILLS],
            requests: 0,
            mutation: None,
        })
    }

    /// The ticks from `first` to `last` may be asked for, in a backfill after those before.
    ///
    /// # Errors
    ///
    /// [`InvalidScope`] if these are not 1 or 2 of the ticks 1 to 3, or for a third backfill.
    pub fn backfill(mut self, first: u8, last: u8) -> Result<Self, InvalidScope> {
        let is_range = (1..=TICKS as u8).contains(&last)
            && first <= last
            && first + RANGE as u8 > last
            && first > 0;
        match self.ranges.iter_mut().find(|range| range.is_none()) {
            Some(range) if is_range => *range = Some((first, last)),
            _ => {
                let message = format!(
                    "up to {MOST_BACKFILLS} backfills have 1 or {RANGE} of the ticks 1 to {TICKS}, not {first} to {last}"
                );
                return Err(InvalidScope::new(message));
            }
        }
        Ok(self)
    }

    /// So many runs may be asked for, 3 at most.
    ///
    /// # Errors
    ///
    /// [`InvalidScope`] if it is more.
    pub fn requests(mut self, requests: u8) -> Result<Self, InvalidScope> {
        if requests > MOST_REQUESTS {
            let message = format!("up to {MOST_REQUESTS} runs are asked for, not {requests}");
            return Err(InvalidScope::new(message));
        }
        self.requests = requests;
        Ok(self)
    }

    /// The smallest world that shows a broken rule, with that rule broken.
    pub fn that_notices(mutation: LedgerMutation) -> Self {
        use LedgerRole::{Backfill, Request, Retry, Schedule};
        let (roles, cuts, ranges, requests): (&[_], _, &[_], _) = match mutation {
            LedgerMutation::CountedLate => (&[Backfill], 0, &[(2, 3), (1, 2)], 0),
            LedgerMutation::NoLineToSpare => (&[Backfill, Backfill], 0, &[(1, 2), (1, 2)], 0),
            LedgerMutation::BackfillUnseen
            | LedgerMutation::OwnLockMistaken
            | LedgerMutation::RunsNotReadAgain => (&[Schedule, Retry, Backfill], 1, &[(1, 1)], 0),
            LedgerMutation::CutShortPassed => (&[Schedule, Backfill], 1, &[(2, 2)], 0),
            LedgerMutation::MissedUntold => (&[Schedule, Backfill], 0, &[(3, 3)], 0),
            LedgerMutation::CutShortPassedOnTime => (&[Schedule], 1, &[], 0),
            LedgerMutation::BackfillByCountAlone | LedgerMutation::TickNotUsedUp => {
                (&[Schedule, Backfill], 0, &[(1, 1)], 0)
            }
            LedgerMutation::NewestRequestFirst => (&[Request], 0, &[], 2),
            LedgerMutation::RequestsUnlimited => (&[Request], 0, &[], 3),
        };
        let check = Self::new(roles, cuts).and_then(|check| check.requests(requests));
        let check = ranges.iter().fold(check, |check, (first, last)| {
            check.and_then(|check| check.backfill(*first, *last))
        });
        let check = check.expect("it is within the limits");
        check.mutation(mutation)
    }

    /// Breaks a rule.
    pub const fn mutation(mut self, mutation: LedgerMutation) -> Self {
        self.mutation = Some(mutation);
        self
    }

    /// Returns the tick of a backfill with this number, from 1 on.
    pub(super) fn tick_of(&self, moment: u8, number: u8) -> Option<u8> {
        let (first, last) = self.ranges[usize::from(moment) - 1]?;
        Some(first + number - 1).filter(|tick| *tick <= last)
    }
}

impl fmt::Display for LedgerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roles = self.roles.iter().flatten();
        let names: Vec<_> = roles.map(|role| role.name()).collect();
        let (names, cuts, requests) = (names.join(", "), self.cuts, self.requests);
        write!(f, "ledger: {names}, {cuts} cut short")?;
        for (first, last) in self.ranges.iter().flatten() {
            write!(f, ", backfill {first}-{last}")?;
        }
        if requests > 0 {
            write!(f, ", {requests} requests")?;
        }
        match self.mutation {
            Some(mutation) => write!(f, ", {mutation}"),
            None => Ok(()),
        }
    }
}

/// The most runs that are cut short.
const MOST_CUTS: u8 = 3;

/// The most backfills that are asked for.
pub(super) const MOST_BACKFILLS: usize = 2;

/// The most runs that are asked for.
const MOST_REQUESTS: u8 = 3;
