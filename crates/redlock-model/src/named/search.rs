//! The search: every state that can be reached.

use super::{
    NamedCheck,
    rules::Rules,
    step::{Outcome, Reply, Step},
};
use crate::told::Told;

/// What a [`NamedCheck`] came to.
#[derive(Clone, Debug)]
pub struct NamedReport {
    told: Told,
    granted: u64,
    quarantines: u64,
    relisted: u64,
    extended: u64,
}

impl NamedCheck {
    /// Explores all that can happen, up to the first breach.
    pub fn run(&self) -> NamedReport {
        let (mut granted, mut quarantines) = (0, 0);
        let (mut relisted, mut extended) = (0, 0);
        let told = Told::of(&Rules::new(*self), |step| match step {
            Step::Call { reply, .. } | Step::Arrive { reply, .. } => match reply {
                Reply::Granted => granted += 1,
                Reply::Begins => quarantines += 1,
                _ => {}
            },
            Step::Inquire { outcome, .. } | Step::Conclude { outcome, .. } => {
                relisted += u64::from(matches!(outcome, Outcome::Relists { .. }));
                extended += u64::from(matches!(outcome, Outcome::Extends { .. }));
            }
            _ => {}
        });
        NamedReport {
            told,
            granted,
            quarantines,
            relisted,
            extended,
        }
    }
}

impl NamedReport {
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

    /// How many of the steps gave a client a lease.
    pub const fn granted(&self) -> u64 {
        self.granted
    }

    /// How many of the steps began a quarantine.
    pub const fn quarantines(&self) -> u64 {
        self.quarantines
    }

    /// How many of the steps replaced a roll.
    pub const fn relisted(&self) -> u64 {
        self.relisted
    }

    /// How many of the steps let informants join a roll.
    pub const fn extended(&self) -> u64 {
        self.extended
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
