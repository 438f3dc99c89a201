use crate::{Outcome, Quorum, Votes};

/// One round in which a key is let go on every node that may have it.
#[derive(Debug)]
pub struct Release {
    votes: Votes,
    decided: bool,
}

/// What a [`Release`] came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a driver must handle every verdict"
)]
pub enum ReleaseVerdict {
    /// A majority is known not to have the key any more.
    Released,
    /// Fewer nodes confirmed; the key ends there by its time to live at the latest.
    Unconfirmed,
}

impl Release {
    /// A release that is sent to these nodes; the others are known not to have the key.
    pub fn start(quorum: Quorum, nodes: &[usize]) -> Self {
        let mut votes = Votes::new(quorum);
        for node in (0..quorum.nodes()).filter(|node| !nodes.contains(node)) {
            votes.cast(node, CONFIRMED);
        }
        Self {
            votes,
            decided: false,
        }
    }

    /// A node's outcome became known; returns the verdict when this decides the round.
    ///
    /// A refusal confirms too: the key is gone, or it is another's.
    pub fn on_outcome(&mut self, node: usize, outcome: Outcome) -> Option<ReleaseVerdict> {
        let outcome = match outcome {
            Outcome::Refused { .. } | Outcome::Missing | Outcome::NotAVote { .. } => CONFIRMED,
            other => other,
        };
        if self.decided || !self.votes.cast(node, outcome) {
            return None;
        }
        self.decide()
    }

    /// The time limit of the round was reached.
    pub fn on_time_limit(&mut self) -> Option<ReleaseVerdict> {
        if self.decided {
            return None;
        }
        self.votes.close();
        self.decide()
    }

    fn decide(&mut self) -> Option<ReleaseVerdict> {
        let verdict = if self.votes.is_won() {
            ReleaseVerdict::Released
        } else if self.votes.is_out_of_reach() {
            ReleaseVerdict::Unconfirmed
        } else {
            return None;
        };
        self.decided = true;
        Some(verdict)
    }
}

const CONFIRMED: Outcome = Outcome::Granted { counter: 0 };

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    fn release(nodes: &[usize]) -> Release {
        Release::start(Quorum::of(NonZeroUsize::new(3).unwrap()), nodes)
    }

    #[test]
    fn a_majority_that_does_not_have_the_key_is_enough() {
        let mut all = release(&[0, 1, 2]);
        assert_eq!(all.on_outcome(0, CONFIRMED), None);
        let gone = Outcome::Missing;
        assert_eq!(all.on_outcome(1, gone), Some(ReleaseVerdict::Released));
        assert_eq!(all.on_outcome(2, Outcome::Unknown), None);

        let mut one_refused_the_acquire = release(&[0, 1]);
        let verdict = one_refused_the_acquire.on_outcome(1, CONFIRMED);
        assert_eq!(verdict, Some(ReleaseVerdict::Released));
    }

    #[test]
    fn silence_is_not_confirmation() {
        let mut silent = release(&[0, 1, 2]);
        assert_eq!(silent.on_outcome(0, CONFIRMED), None);
        assert_eq!(silent.on_time_limit(), Some(ReleaseVerdict::Unconfirmed));
        assert_eq!(silent.on_time_limit(), None);
    }
}
