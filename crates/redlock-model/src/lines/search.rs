//! The search: every state that can be reached, and from each a way to a lease of the first caller that waits.

use super::{LineCheck, rules::Rules, step::Step};
use crate::told::Told;

/// What a [`LineCheck`] came to.
#[derive(Clone, Debug)]
pub struct LineReport {
    told: Told,
    settled: u64,
    heard: u64,
    opened: u64,
}

impl LineCheck {
    /// Explores all that can happen, up to the first breach.
    pub fn run(&self) -> LineReport {
        let (mut settled, mut heard, mut opened) = (0, 0, 0);
        let told = Told::of_live(&Rules::new(*self), |step| match step {
            Step::Settle { .. } => settled += 1,
            Step::Hear { .. } => heard += 1,
            Step::Open { .. } => opened += 1,
            _ => {}
        });
        LineReport {
            told,
            settled,
            heard,
            opened,
        }
    }
}

impl LineReport {
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

    /// How many of the steps gave a caller its token.
    pub const fn settled(&self) -> u64 {
        self.settled
    }

    /// How many of the steps told a caller that a node had given it the key.
    pub const fn heard(&self) -> u64 {
        self.heard
    }

    /// How many of the steps let a node vote again.
    pub const fn opened(&self) -> u64 {
        self.opened
    }

    /// Whether nothing goes wrong in any state that can be reached.
    pub const fn holds(&self) -> bool {
        self.told.trace.is_none()
    }

    /// One of the shortest ways to a breach, in lines.
    pub fn trace(&self) -> Option<&str> {
        self.told.trace.as_deref()
    }
}
