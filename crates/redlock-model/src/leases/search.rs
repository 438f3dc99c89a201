//! The search: every state that can be reached, up to the first breach.

use super::{LeaseCheck, rules::Rules, step::Step};
use crate::Report;

/// How often a [`LeaseCheck`] took steps of some kinds.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LeaseCounts {
    /// How many of the steps gave a client its token.
    pub settled: u64,
    /// How many of the steps made a writer a reader.
    pub downgraded: u64,
    /// How many of the steps let a node vote again.
    pub opened: u64,
}

impl LeaseCheck {
    /// Explores all that can happen, up to the first breach.
    pub fn run(&self) -> Report<LeaseCounts> {
        Report::of(
            &Rules::new(*self),
            |counts: &mut LeaseCounts, step| match step {
                Step::Settle { .. } => counts.settled += 1,
                Step::Downgrade { .. } => counts.downgraded += 1,
                Step::Open { .. } => counts.opened += 1,
                _ => {}
            },
        )
    }
}
