use std::time::Duration;

use crate::{GiveBack, Outcome, Quorum};

/// What one node has said in a round so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Vote {
    /// Nothing yet.
    Pending,
    /// This, and nothing that comes later changes it.
    Cast(Outcome),
}

/// The votes of one round, one per node.
///
/// A node votes once.
/// What comes after its vote, or after the round was closed, is never counted: a duplicated reply
/// must not make a majority out of one node, nor a late one out of an earlier round.
#[derive(Clone, Debug)]
pub struct Votes {
    quorum: Quorum,
    // invariant: as many as the quorum has nodes
    cast: Vec<Vote>,
}

impl Votes {
    /// No votes yet.
    pub fn new(quorum: Quorum) -> Self {
        Self {
            quorum,
            cast: vec![Vote::Pending; quorum.nodes()],
        }
    }

    /// The quorum that they are votes of.
    pub const fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// Counts a node's vote; `false` if that node has voted before or does not exist.
    pub fn cast(&mut self, node: usize, outcome: Outcome) -> bool {
        match self.cast.get_mut(node) {
            Some(vote @ Vote::Pending) => {
                *vote = Vote::Cast(outcome);
                true
            }
            _ => false,
        }
    }

    /// Makes every node that has not voted one whose outcome is unknown.
    pub fn close(&mut self) {
        for vote in &mut self.cast {
            if *vote == Vote::Pending {
                *vote = Vote::Cast(Outcome::Unknown);
            }
        }
    }

    /// The votes, by node.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Vote> + '_ {
        self.cast.iter().copied()
    }

    /// The number of nodes that granted, and whose grant is a vote.
    pub fn granted(&self) -> usize {
        self.count(|vote| matches!(vote, Vote::Cast(Outcome::Granted { .. })))
    }

    /// The number of nodes that refused.
    pub fn refused(&self) -> usize {
        self.count(|vote| matches!(vote, Vote::Cast(Outcome::Refused { .. } | Outcome::Missing)))
    }

    /// The number of nodes that gave no answer that counts.
    pub fn failed(&self) -> usize {
        self.count(|vote| {
            matches!(
                vote,
                Vote::Cast(Outcome::NotAVote { .. } | Outcome::NotExecuted | Outcome::Unknown)
            )
        })
    }

    /// The nodes that granted, each with its counter.
    pub fn counters(&self) -> Vec<(usize, u64)> {
        self.cast
            .iter()
            .enumerate()
            .filter_map(|(node, vote)| match vote {
                Vote::Cast(Outcome::Granted { counter }) => Some((node, *counter)),
                _ => None,
            })
            .collect()
    }

    /// Whether a majority has granted.
    pub fn is_won(&self) -> bool {
        self.granted() >= self.quorum.majority()
    }

    /// Whether a majority can no longer grant, whatever is still to come.
    pub fn is_out_of_reach(&self) -> bool {
        self.refused() + self.failed() > self.quorum.tolerated()
    }

    /// Whether too few nodes are left that may give a usable answer.
    pub fn is_majority_down(&self) -> bool {
        self.failed() > self.quorum.tolerated()
    }

    /// Whether so many nodes refused that the others are no majority.
    pub fn is_majority_gone(&self) -> bool {
        self.refused() > self.quorum.tolerated()
    }

    /// Whether every node has voted.
    pub fn is_complete(&self) -> bool {
        !self.cast.contains(&Vote::Pending)
    }

    /// The nodes that may hold what they were asked to take, now or once their request arrives.
    ///
    /// Where the request is still on its way over a connection that stands, a release on that connection
    /// follows it; where nobody knows, the owner must be buried.
    pub fn may_hold(&self) -> impl Iterator<Item = GiveBack> + '_ {
        self.cast
            .iter()
            .enumerate()
            .filter_map(|(node, vote)| match vote {
                Vote::Cast(outcome) if !outcome.may_hold() => None,
                vote => Some(GiveBack {
                    node,
                    bury: *vote == Vote::Cast(Outcome::Unknown),
                }),
            })
    }

    /// How long until enough of the nodes that are quarantined vote again, if too few do without them.
    ///
    /// `None` if they are not what is missing.
    pub fn quorum_ready_in(&self) -> Option<Duration> {
        let missing = self.failed().checked_sub(self.quorum.tolerated() + 1)? + 1;
        let mut ready_in: Vec<Duration> = self
            .cast
            .iter()
            .filter_map(|vote| match vote {
                Vote::Cast(Outcome::NotAVote { ready_in }) => *ready_in,
                _ => None,
            })
            .collect();
        ready_in.sort_unstable();
        ready_in.get(missing - 1).copied()
    }

    /// How long until the remaining times that nodes reported allow a majority again.
    ///
    /// Nodes that granted count as free, since a failed round frees them; those in quarantine are free
    /// when they vote again, and nodes that gave no answer, or do not vote for another reason, count as never.
    pub fn majority_free_in(&self) -> Option<Duration> {
        let mut free_in: Vec<Duration> = self
            .cast
            .iter()
            .filter_map(|vote| match vote {
                Vote::Cast(Outcome::Granted { .. } | Outcome::Missing) => Some(Duration::ZERO),
                Vote::Cast(Outcome::Refused { remaining }) => *remaining,
                Vote::Cast(Outcome::NotAVote { ready_in }) => *ready_in,
                _ => None,
            })
            .collect();
        free_in.sort_unstable();
        free_in.get(self.quorum.majority() - 1).copied()
    }

    fn count(&self, counts: impl Fn(Vote) -> bool) -> usize {
        self.cast.iter().filter(|vote| counts(**vote)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    const GRANTED: Outcome = Outcome::Granted { counter: 1 };
    const QUARANTINED: Outcome = Outcome::NotAVote {
        ready_in: Some(Duration::from_secs(9)),
    };
    const REFUSED: Outcome = Outcome::Refused { remaining: None };

    fn votes(outcomes: &[Outcome]) -> Votes {
        let mut votes = Votes::new(Quorum::of(NonZeroUsize::new(outcomes.len()).unwrap()));
        for (node, outcome) in outcomes.iter().enumerate() {
            assert!(votes.cast(node, *outcome));
        }
        votes
    }

    #[test]
    fn a_node_votes_once() {
        let mut votes = Votes::new(Quorum::of(NonZeroUsize::new(3).unwrap()));
        assert!(votes.cast(0, GRANTED));
        assert!(!votes.cast(0, GRANTED));
        assert!(!votes.cast(3, GRANTED));
        assert_eq!(votes.granted(), 1);
        votes.close();
        assert!(!votes.cast(1, GRANTED));
        assert!(!votes.is_won());
    }

    #[test]
    fn s23_the_time_to_a_majority_is_the_right_order_statistic() {
        let held = |ms| Outcome::Refused {
            remaining: Some(Duration::from_millis(ms)),
        };
        let ms = |votes: Votes| votes.majority_free_in().map(|free_in| free_in.as_millis());
        assert_eq!(
            ms(votes(&[held(1_000), held(9_000), Outcome::Unknown])),
            Some(9_000)
        );
        assert_eq!(ms(votes(&[held(9_000), GRANTED, held(1_000)])), Some(1_000));
        assert_eq!(
            ms(votes(&[
                held(1_000),
                Outcome::Unknown,
                Outcome::NotExecuted
            ])),
            None
        );
        assert_eq!(ms(votes(&[held(1_000), REFUSED, REFUSED])), None);
    }

    #[test]
    fn l08_a_majority_in_quarantine_is_not_free_before_it_votes() {
        let free_in = |outcomes: &[Outcome]| votes(outcomes).majority_free_in();
        let nine = Some(Duration::from_secs(9));
        assert_eq!(free_in(&[QUARANTINED, QUARANTINED, GRANTED]), nine);
        let unfit = Outcome::NotAVote { ready_in: None };
        assert_eq!(free_in(&[unfit, unfit, GRANTED]), None);
    }

    #[test]
    fn the_time_to_a_quorum_counts_the_nodes_that_are_missing() {
        let quarantined = |secs| Outcome::NotAVote {
            ready_in: Some(Duration::from_secs(secs)),
        };
        let secs = |votes: Votes| votes.quorum_ready_in().map(|ready| ready.as_secs());
        let (one, two) = (quarantined(1), quarantined(2));
        assert_eq!(secs(votes(&[GRANTED, one, two])), Some(1));
        assert_eq!(secs(votes(&[two, one, Outcome::Unknown])), Some(2));
        assert_eq!(secs(votes(&[GRANTED, GRANTED, two])), None);
        let unfit = Outcome::NotAVote { ready_in: None };
        assert_eq!(secs(votes(&[unfit, unfit, two])), None);
    }

    /// Every way in which N = 1 to 7 nodes can vote is decided, and only one way.
    #[test]
    fn s12_every_split_is_decided() {
        let kinds = [GRANTED, REFUSED, QUARANTINED, Outcome::Unknown];
        for nodes in 1..=7u32 {
            for split in 0..4usize.pow(nodes) {
                let outcomes: Vec<_> = (0..nodes)
                    .map(|node| kinds[split / 4usize.pow(node) % 4])
                    .collect();
                let votes = votes(&outcomes);
                assert_ne!(votes.is_won(), votes.is_out_of_reach(), "{outcomes:?}");
                let granted = outcomes.iter().filter(|o| **o == GRANTED).count();
                assert_eq!(votes.is_won(), 2 * granted > outcomes.len(), "{outcomes:?}");
            }
        }
    }
}
