//! The search: every state that can be reached, up to the first that must not be.

use super::{LedgerCheck, rules::Rules, step::Step};
use crate::Report;

/// How often a [`LedgerCheck`] took steps of some kinds.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LedgerCounts {
    /// How many of the steps ended a run by itself.
    pub ended: u64,
    /// How many of the steps claimed a further run of a tick.
    pub again: u64,
    /// How many of the steps decided on a tick of a backfill.
    pub backfilled: u64,
    /// How many of the steps claimed a requested run.
    pub requested: u64,
}

impl LedgerCheck {
    /// Explores all that can happen, up to the first thing that must not.
    pub fn run(&self) -> Report<LedgerCounts> {
        Report::of(
            &Rules::new(*self),
            |counts: &mut LedgerCounts, step| match step {
                Step::End { .. } => counts.ended += 1,
                Step::ClaimRun { .. } => counts.again += 1,
                Step::Decide { .. } => counts.backfilled += 1,
                Step::ClaimRequest { .. } => counts.requested += 1,
                _ => {}
            },
        )
    }
}
