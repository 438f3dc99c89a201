//! The search: every state that can be reached, and from each a way to a lease of the first caller that waits.

use super::{LineCheck, rules::Rules, step::Step};
use crate::Report;

/// How often a [`LineCheck`] took steps of some kinds.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LineCounts {
    /// How many of the steps gave a caller its token.
    pub settled: u64,
    /// How many of the steps told a caller that a node had given it the key.
    pub heard: u64,
    /// How many of the steps let a node vote again.
    pub opened: u64,
}

impl LineCheck {
    /// Explores all that can happen, up to the first breach.
    pub fn run(&self) -> Report<LineCounts> {
        Report::of_live(
            &Rules::new(*self),
            |counts: &mut LineCounts, step| match step {
                Step::Settle { .. } => counts.settled += 1,
                Step::Hear { .. } => counts.heard += 1,
                Step::Open { .. } => counts.opened += 1,
                _ => {}
            },
        )
    }
}
