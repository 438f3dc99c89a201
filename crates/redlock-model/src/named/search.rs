//! The search: every state that can be reached.

use super::{
    NamedCheck,
    rules::Rules,
    step::{Outcome, Reply, Step},
};
use crate::Report;

/// How often a [`NamedCheck`] took steps of some kinds.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct NamedCounts {
    /// How many of the steps gave a client a lease.
    pub granted: u64,
    /// How many of the steps began a quarantine.
    pub quarantines: u64,
    /// How many of the steps replaced a roll.
    pub relisted: u64,
    /// How many of the steps let informants join a roll.
    pub extended: u64,
}

impl NamedCheck {
    /// Explores all that can happen, up to the first breach.
    pub fn run(&self) -> Report<NamedCounts> {
        Report::of(
            &Rules::new(*self),
            |counts: &mut NamedCounts, step| match step {
                Step::Call { reply, .. } | Step::Arrive { reply, .. } => match reply {
                    Reply::Granted => counts.granted += 1,
                    Reply::Begins => counts.quarantines += 1,
                    _ => {}
                },
                Step::Inquire { outcome, .. } | Step::Conclude { outcome, .. } => {
                    counts.relisted += u64::from(matches!(outcome, Outcome::Relists { .. }));
                    counts.extended += u64::from(matches!(outcome, Outcome::Extends { .. }));
                }
                _ => {}
            },
        )
    }
}
