//! The search: every state that can be reached, up to the first tick that is started twice.

use super::{TickCheck, rules::Rules, step::Step};
use crate::Report;

/// How often a [`TickCheck`] took steps of some kinds.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TickCounts {
    /// How many of the steps started a tick.
    pub started: u64,
    /// How many of the steps let a node vote again.
    pub opened: u64,
}

impl TickCheck {
    /// Explores all that can happen, up to the first tick that is started twice.
    pub fn run(&self) -> Report<TickCounts> {
        Report::of(
            &Rules::new(*self),
            |counts: &mut TickCounts, step| match step {
                Step::Start { .. } => counts.started += 1,
                Step::Open { .. } => counts.opened += 1,
                _ => {}
            },
        )
    }
}
