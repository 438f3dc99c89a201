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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{num::NonZeroUsize, time::Duration};

    const GONE: NodeOutcome = NodeOutcome::Missing;
    const GRANTED: NodeOutcome = NodeOutcome::Granted { counter: 0 };

    fn ms(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    fn timing(ttl: u64) -> Timing {
        Timing::new(Duration::from_millis(ttl), 0.01, Duration::from_millis(1)).unwrap()
    }

    fn extension(nodes: usize, valid_until: Instant, now: Instant) -> Extension {
        let quorum = Quorum::of(NonZeroUsize::new(nodes).unwrap());
        Extension::start(quorum, timing(1_000), valid_until, now)
    }

    // Shows: T2.4.
    #[test]
    fn a_majority_moves_the_deadline() {
        let mut extension = extension(3, ms(500), ms(300));
        assert_eq!(extension.on_outcome(0, GRANTED, ms(301)), None);
        assert_eq!(
            extension.on_outcome(1, GRANTED, ms(302)),
            Some(ExtensionVerdict::Extended {
                deadline: ms(300 + 978)
            })
        );
        assert_eq!(extension.on_outcome(2, GRANTED, ms(303)), None);
    }

    // Shows: T1.8.
    #[test]
    fn a_node_that_lost_the_key_does_not_count() {
        let mut extension = extension(3, ms(500), ms(300));
        assert_eq!(extension.on_outcome(0, GONE, ms(301)), None);
        assert_eq!(
            extension.on_outcome(1, GONE, ms(301)),
            Some(ExtensionVerdict::Revoked)
        );
    }

    // Shows: T1.8.
    #[test]
    fn s04_a_confirmation_after_the_old_deadline_does_not_bring_the_lease_back() {
        let mut extension = extension(1, ms(500), ms(300));
        let verdict = extension.on_outcome(0, GRANTED, ms(500));
        assert_eq!(verdict, Some(ExtensionVerdict::Failed));
    }

    #[test]
    fn silence_is_a_failed_round_and_not_a_lost_lease() {
        let mut extension = extension(5, ms(500), ms(300));
        assert_eq!(extension.on_outcome(0, GONE, ms(301)), None);
        assert_eq!(extension.on_outcome(1, GONE, ms(301)), None);
        assert_eq!(
            extension.on_time_limit(ms(350)),
            Some(ExtensionVerdict::Failed)
        );
        assert_eq!(extension.on_time_limit(ms(351)), None);
    }

    // Shows: T3.3.
    #[test]
    fn s22_a_write_back_counts_only_nodes_whose_vote_counted() {
        let mut extension = extension(5, ms(500), ms(300)).among(&[0, 1, 2]);
        assert_eq!(extension.on_outcome(4, GRANTED, ms(301)), None);
        assert_eq!(extension.on_outcome(0, GRANTED, ms(301)), None);
        assert_eq!(extension.on_outcome(1, GRANTED, ms(301)), None);
        let verdict = extension.on_outcome(2, GONE, ms(301));
        assert_eq!(verdict, Some(ExtensionVerdict::Failed));
    }

    proptest! {
        /// pottery, redis-semaphore and redlock-universal counted the new lease from the reply.
        // Shows: T1.1.
        #[test]
        fn s03_the_deadline_counts_from_the_rounds_own_start(
            ttl in 10u64..100_000, start in 0u64..1_000_000, waited in 0u64..200_000,
        ) {
            let timing = timing(ttl);
            let quorum = Quorum::of(NonZeroUsize::MIN);
            let mut extension = Extension::start(quorum, timing, ms(u64::MAX / 4), ms(start));
            match extension.on_outcome(0, GRANTED, ms(start + waited)) {
                Some(ExtensionVerdict::Extended { deadline }) => {
                    prop_assert_eq!(deadline + timing.drift(), ms(start + ttl));
                    prop_assert!(deadline > ms(start + waited));
                }
                verdict => prop_assert_eq!(verdict, Some(ExtensionVerdict::Failed)),
            }
        }
    }
}
