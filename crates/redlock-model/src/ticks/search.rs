//! The search: every state that can be reached, up to the first tick that is started twice.

use super::{TickCheck, rules::Rules, step::Step};
use crate::told::Told;

/// What a [`TickCheck`] came to.
#[derive(Clone, Debug)]
pub struct TickReport {
    told: Told,
    started: u64,
    opened: u64,
}

impl TickCheck {
    /// Explores all that can happen, up to the first tick that is started twice.
    pub fn run(&self) -> TickReport {
        let (mut started, mut opened) = (0, 0);
        let told = Told::of(&Rules::new(*self), |step| match step {
            Step::Start { .. } => started += 1,
            Step::Open { .. } => opened += 1,
            _ => {}
        });
        TickReport {
            told,
            started,
            opened,
        }
    }
}

impl TickReport {
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

    /// How many of the steps started a tick.
    pub const fn started(&self) -> u64 {
        self.started
    }

    /// How many of the steps let a node vote again.
    pub const fn opened(&self) -> u64 {
        self.opened
    }

    /// Whether no tick is started twice in any state that can be reached.
    pub const fn holds(&self) -> bool {
        self.told.trace.is_none()
    }

    /// One of the shortest ways to a tick that is started twice, in lines.
    ///
    /// Worlds that differ only in which node is which are one, so a node may have another number in the next line.
    pub fn trace(&self) -> Option<&str> {
        self.told.trace.as_deref()
    }
}
