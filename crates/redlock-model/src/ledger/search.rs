//! The search: every state that can be reached, up to the first that must not be.

use super::{LedgerCheck, rules::Rules, step::Step};
use crate::told::Told;

/// What a [`LedgerCheck`] came to.
#[derive(Clone, Debug)]
pub struct LedgerReport {
    told: Told,
    ended: u64,
    again: u64,
    backfilled: u64,
    requested: u64,
}

impl LedgerCheck {
    /// Explores all that can happen, up to the first thing that must not.
    pub fn run(&self) -> LedgerReport {
        let (mut ended, mut again, mut backfilled, mut requested) = (0, 0, 0, 0);
        let told = Told::of(&Rules::new(*self), |step| match step {
            Step::End { .. } => ended += 1,
            Step::ClaimRun { .. } => again += 1,
            Step::Decide { .. } => backfilled += 1,
            Step::ClaimRequest { .. } => requested += 1,
            _ => {}
        });
        LedgerReport {
            told,
            ended,
            again,
            backfilled,
            requested,
        }
    }
}

impl LedgerReport {
    /// The number of states that were reached.
    pub const fn states(&self) -> usize {
        self.told.states
    }

    /// The number of steps that were taken, from all of these states.
    pub const fn transitions(&self) -> u64 {
        self.told.transitions
    }

    /// The memory that the states take, in bytes.
    pub const fn bytes(&self) -> usize {
        self.told.bytes
    }

    /// How many of the steps ended a run by itself.
    pub const fn ended(&self) -> u64 {
        self.ended
    }

    /// How many of the steps claimed a further run of a tick.
    pub const fn again(&self) -> u64 {
        self.again
    }

    /// How many of the steps decided on a tick of a backfill.
    pub const fn backfilled(&self) -> u64 {
        self.backfilled
    }

    /// How many of the steps claimed a requested run.
    pub const fn requested(&self) -> u64 {
        self.requested
    }

    /// Whether nothing happens that must not, in any state that can be reached.
    pub const fn holds(&self) -> bool {
        self.told.trace.is_none()
    }

    /// One of the shortest ways to something that must not happen, in lines.
    ///
    /// Worlds that differ only in which of two replicas with one role is which are one, so a replica may have another name
    /// in the next line.
    pub fn trace(&self) -> Option<&str> {
        self.told.trace.as_deref()
    }
}
