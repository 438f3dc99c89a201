//! What is to be checked.

use std::fmt;

use super::{
    LineMutation,
    state::{CALLERS, COUNTED},
};
use crate::InvalidScope;

/// A check of callers in line in a world of three nodes.
///
/// ```
/// use redlock_model::{LineCheck, LineMutation};
///
/// let check = LineCheck::new(2, 0).unwrap().plain();
/// assert!(check.run().holds());
/// let broken = check.mutation(LineMutation::WindowFromTheMessage).run();
/// println!("{}", broken.trace().unwrap());
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is checked until it is run"]
pub struct LineCheck {
    pub(super) callers: usize,
    pub(super) crashes: u8,
    /// How often callers ask again, and holders ask late, in all, where tokens are counted.
    pub(super) beats: Option<u8>,
    pub(super) is_plain: bool,
    pub(super) mutation: Option<LineMutation>,
}

impl LineCheck {
    /// Makes a check of exclusion, and of the way to a lease of the first caller that waits.
    ///
    /// There are 2 or 3 callers, which ask again as often as they like, and up to 3 losses of data.
    ///
    /// # Errors
    ///
    /// [`InvalidScope`] if a number is out of range.
    pub fn new(callers: usize, crashes: u8) -> Result<Self, InvalidScope> {
        if !(2..=CALLERS).contains(&callers) || crashes > MOST_CRASHES {
            let message = format!(
                "there are 2 or {CALLERS} callers and up to {MOST_CRASHES} crashes, not {callers} and {crashes}"
            );
            return Err(InvalidScope::new(message));
        }
        Ok(Self {
            callers,
            crashes,
            beats: None,
            is_plain: false,
            mutation: None,
        })
    }

    /// Makes a check of exclusion and of the order of tokens.
    ///
    /// There are two callers, which ask again up to `beats` times in all, 7 at most: counters have no end otherwise.
    ///
    /// # Errors
    ///
    /// [`InvalidScope`] if a number is out of range.
    pub fn of_tokens(beats: u8, crashes: u8) -> Result<Self, InvalidScope> {
        if beats > MOST_BEATS {
            let message =
                format!("two callers ask again up to {MOST_BEATS} times, not {beats} times");
            return Err(InvalidScope::new(message));
        }
        let beats = Some(beats);
        Ok(Self {
            beats,
            ..Self::new(COUNTED, crashes)?
        })
    }

    /// Returns the smallest world that shows a broken rule, with that rule broken.
    pub const fn that_notices(mutation: LineMutation) -> Self {
        Self {
            callers: 2,
            crashes: matches!(mutation, LineMutation::GivenInQuarantine) as u8,
            beats: None,
            is_plain: !matches!(
                mutation,
                LineMutation::DeadHeadNotSkipped | LineMutation::SignNotLookedAt
            ),
            mutation: Some(mutation),
        }
    }

    /// Leaves out what makes a world large.
    ///
    /// No holder asks for the key that a node lacks, no entry ends, and a node does nothing between a caller's acquire and the
    /// release behind it.
    pub const fn plain(mut self) -> Self {
        self.is_plain = true;
        self
    }

    /// Breaks a rule.
    pub const fn mutation(mut self, mutation: LineMutation) -> Self {
        self.mutation = Some(mutation);
        self
    }

    pub(super) fn breaks(&self, mutation: LineMutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Returns whether tokens are counted.
    pub(super) const fn has_tokens(&self) -> bool {
        self.beats.is_some()
    }
}

impl fmt::Display for LineCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (callers, crashes) = (self.callers, self.crashes);
        write!(f, "lines: 3 nodes, {callers} callers, {crashes} crashes")?;
        if let Some(beats) = self.beats {
            write!(f, ", tokens, {beats} beats")?;
        }
        if self.is_plain {
            f.write_str(", plain")?;
        }
        match self.mutation {
            Some(mutation) => write!(f, ", {mutation}"),
            None => Ok(()),
        }
    }
}

/// As many as two bits count.
const MOST_CRASHES: u8 = 3;
/// As many as three bits count.
const MOST_BEATS: u8 = 7;
