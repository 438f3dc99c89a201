use super::{Ballot, Rule};
use crate::{Instant, NodeOutcome, Quorum, Votes};

/// One round in which a key is released on every node that may have it.
pub type Release = Ballot<Releasing>;

/// The rule of a [`Release`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Releasing;

/// The verdict of a [`Release`].
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
    /// Starts a release that is sent to these nodes; the others are known not to have the key.
    pub fn start(quorum: Quorum, is_sent: impl Fn(usize) -> bool) -> Self {
        Self::new(quorum, Releasing).with_others(is_sent, CONFIRMED)
    }
}

impl Rule for Releasing {
    type Verdict = ReleaseVerdict;

    /// Counts a refusal as a confirmation too: the key is gone, or it is another's.
    fn counts(&self, outcome: NodeOutcome) -> NodeOutcome {
        match outcome {
            NodeOutcome::Refused { .. } | NodeOutcome::Missing | NodeOutcome::NotAVote { .. } => {
                CONFIRMED
            }
            other => other,
        }
    }

    fn decide(&mut self, votes: &Votes, _: Instant) -> Option<ReleaseVerdict> {
        if votes.is_won() {
            Some(ReleaseVerdict::Released)
        } else {
            votes
                .is_out_of_reach()
                .then_some(ReleaseVerdict::Unconfirmed)
        }
    }
}

const CONFIRMED: NodeOutcome = NodeOutcome::Granted { counter: 0 };

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    fn release(nodes: &[usize]) -> Release {
        let quorum = Quorum::of(NonZeroUsize::new(3).unwrap());
        Release::start(quorum, |node| nodes.contains(&node))
    }

    #[test]
    fn a_majority_that_does_not_have_the_key_is_enough() {
        let mut all = release(&[0, 1, 2]);
        assert_eq!(all.on_outcome(0, CONFIRMED, Instant::ORIGIN), None);
        let gone = NodeOutcome::Missing;
        assert_eq!(
            all.on_outcome(1, gone, Instant::ORIGIN),
            Some(ReleaseVerdict::Released)
        );
        assert_eq!(
            all.on_outcome(2, NodeOutcome::Unknown, Instant::ORIGIN),
            None
        );

        let mut one_refused_the_acquire = release(&[0, 1]);
        let verdict = one_refused_the_acquire.on_outcome(1, CONFIRMED, Instant::ORIGIN);
        assert_eq!(verdict, Some(ReleaseVerdict::Released));
    }

    #[test]
    fn silence_is_not_confirmation() {
        let mut silent = release(&[0, 1, 2]);
        assert_eq!(silent.on_outcome(0, CONFIRMED, Instant::ORIGIN), None);
        assert_eq!(
            silent.on_time_limit(Instant::ORIGIN),
            Some(ReleaseVerdict::Unconfirmed)
        );
        assert_eq!(silent.on_time_limit(Instant::ORIGIN), None);
    }
}
