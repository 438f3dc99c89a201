use super::{Ballot, Rule};
use crate::{Instant, NodeOutcome, Quorum, Timing, Votes};

/// One round in which every node, or a majority, is asked to keep a held key for longer.
///
/// It counts when a majority that *still has this owner's key* confirms before the old deadline, and
/// then the new deadline counts from this round's own start.
/// A round that fails changes nothing: the lease is valid up to the deadline it had.
pub type Extension = Ballot<Extending>;

/// The rule of an [`Extension`].
#[derive(Debug)]
pub struct Extending {
    timing: Timing,
    start: Instant,
    valid_until: Instant,
    verdict: Option<ExtensionVerdict>,
}

/// The verdict of an [`Extension`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a driver must handle every verdict"
)]
pub enum ExtensionVerdict {
    /// A majority confirmed: the lease is valid up to this deadline.
    Extended {
        /// The new deadline.
        deadline: Instant,
    },
    /// No majority confirmed in time; another round may.
    Failed,
    /// Too many voting nodes say that they do not have the key for the others to be a majority: another client may have
    /// it.
    Revoked,
}

impl Extension {
    /// Starts a round whose requests are sent after `now`, for a lease that is valid until `valid_until`.
    pub fn start(quorum: Quorum, timing: Timing, valid_until: Instant, now: Instant) -> Self {
        let rule = Extending {
            timing,
            start: now,
            valid_until,
            verdict: None,
        };
        Self::new(quorum, rule)
    }

    /// Sends the round to these nodes only: the votes of the others were not counted, or they are left out this time.
    ///
    /// The others count as nodes that have executed nothing.
    pub fn among(self, nodes: &[usize]) -> Self {
        self.with_others(|node| nodes.contains(&node), NodeOutcome::NotExecuted)
    }

    /// Returns the lengths of time of the lease.
    pub const fn timing(&self) -> Timing {
        self.rule.timing
    }

    /// Returns what the round came to, if it is decided.
    pub const fn verdict(&self) -> Option<ExtensionVerdict> {
        self.rule.verdict
    }
}

impl Rule for Extending {
    type Verdict = ExtensionVerdict;

    fn decide(&mut self, votes: &Votes, now: Instant) -> Option<ExtensionVerdict> {
        let verdict = if votes.is_won() {
            let deadline = self.timing.deadline(self.start);
            // After the old deadline the key may have been another's meanwhile, so a confirmation
            // that is processed later must not bring the lease back.
            if now < self.valid_until && now < deadline {
                ExtensionVerdict::Extended { deadline }
            } else {
                ExtensionVerdict::Failed
            }
        } else if votes.is_majority_gone() {
            ExtensionVerdict::Revoked
        } else if votes.is_majority_down()
            || (votes.is_out_of_reach() && !votes.may_majority_be_gone())
        {
            ExtensionVerdict::Failed
        } else {
            // Out of reach, but the nodes still to come decide between failed and revoked.
            return None;
        };
        self.verdict = Some(verdict);
        self.verdict
    }
}
