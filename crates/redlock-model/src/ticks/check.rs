//! What is to be checked.

use std::fmt;

use super::{TickMutation, state::CLAIMANTS};
use crate::InvalidScope;

/// A check of claims in a world of three nodes.
///
/// ```
/// use redlock_model::{TickCheck, TickMutation};
///
/// let check = TickCheck::new(2, 1).unwrap();
/// assert!(check.run().holds());
/// let broken = check.mutation(TickMutation::HorizonIgnored).run();
/// println!("{}", broken.trace().unwrap());
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is checked until it is run"]
pub struct TickCheck {
    pub(super) claimants: usize,
    /// The first of the ticks that are claimed.
    pub(super) first: u8,
    pub(super) crashes: u8,
    /// How far clocks go.
    pub(super) clock: u8,
    pub(super) strays: bool,
    pub(super) mutation: Option<TickMutation>,
}

impl TickCheck {
    /// A check with so many claimants of one tick, 1 to 3, and so many losses of data, 3 at most.
    ///
    /// # Errors
    ///
    /// [`InvalidScope`] if a number is out of range.
    pub fn new(claimants: usize, crashes: u8) -> Result<Self, InvalidScope> {
        if !(1..=CLAIMANTS).contains(&claimants) || crashes > MOST_CRASHES {
            let message = format!(
                "there are from 1 to {CLAIMANTS} claimants and up to {MOST_CRASHES} crashes, not {claimants} and {crashes}"
            );
            return Err(InvalidScope::new(message));
        }
        Ok(Self {
            claimants,
            first: 2,
            crashes,
            clock: 1,
            strays: false,
            mutation: None,
        })
    }

    /// The smallest world that shows a broken rule, with that rule broken.
    pub const fn that_notices(mutation: TickMutation) -> Self {
        let (claimants, crashes) = match mutation {
            TickMutation::WatermarkNotCommitted
            | TickMutation::CommitBeforeMajority
            | TickMutation::StartedAndWithdrawn => (2, 0),
            TickMutation::NewestWithdrawn => (3, 0),
            _ => (2, 1),
        };
        Self {
            claimants,
            first: 2,
            crashes,
            clock: match mutation {
                TickMutation::EarlyDiffers => 2,
                _ => 1,
            },
            strays: matches!(mutation, TickMutation::HorizonOfTheTelling),
            mutation: Some(mutation),
        }
    }

    /// Each claims any of two ticks, of which the first can be claimed at once.
    pub const fn two_ticks(mut self) -> Self {
        self.first = 1;
        self
    }

    /// Clocks go on for a step more.
    pub const fn longer(mut self) -> Self {
        self.clock = 2;
        self
    }

    /// Clocks go astray, and are right again.
    pub const fn with_strays(mut self) -> Self {
        self.strays = true;
        self
    }

    /// Breaks a rule.
    pub const fn mutation(mut self, mutation: TickMutation) -> Self {
        self.mutation = Some(mutation);
        self
    }
}

impl fmt::Display for TickCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            claimants,
            first,
            crashes,
            clock,
            ..
        } = self;
        let ticks = if *first == 1 { "2 ticks" } else { "1 tick" };
        write!(
            f,
            "claims: 3 nodes, {claimants} claimants, {ticks}, {crashes} crashes, clocks up to {clock}"
        )?;
        if self.strays {
            f.write_str(", clocks astray")?;
        }
        match self.mutation {
            Some(mutation) => write!(f, ", {mutation}"),
            None => Ok(()),
        }
    }
}

/// As many as two bits count.
const MOST_CRASHES: u8 = 3;
