//! The time since when nodes have not answered with a vote.

use crate::{Instant, NodeOutcome, Quorum};

/// Since when the answers of nodes are no votes.
#[derive(Debug)]
pub(super) struct Outage {
    // invariant: one entry per node
    nodes: Vec<Usefulness>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Usefulness {
    /// Since when it does not answer with a vote; `None` while it does, as far as is known.
    lost: Option<Instant>,
    /// Whether it voted, by its last standing on this connection.
    votes: bool,
}

impl Outage {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes: vec![Usefulness::default(); nodes],
        }
    }

    /// Takes in that the connection to a node was lost, or could not be made.
    pub(super) fn on_disconnected(&mut self, node: usize, at: Instant) {
        self.on_standing(node, false, at);
    }

    /// Takes in that a node said where it stands: whether it votes.
    ///
    /// That it goes on to vote proves nothing: it may fail whatever it is asked for.
    pub(super) fn on_standing(&mut self, node: usize, votes: bool, at: Instant) {
        let Some(known) = self.nodes.get_mut(node) else {
            return;
        };
        if !votes {
            known.lost.get_or_insert(at);
        } else if !known.votes {
            known.lost = None;
        }
        known.votes = votes;
    }

    /// Takes in that a node's outcome in an attempt became known.
    pub(super) fn on_outcome(&mut self, node: usize, outcome: NodeOutcome, at: Instant) {
        let Some(known) = self.nodes.get_mut(node) else {
            return;
        };
        match outcome {
            NodeOutcome::Granted { .. } | NodeOutcome::Refused { .. } | NodeOutcome::Missing => {
                known.lost = None;
            }
            NodeOutcome::NotAVote { .. } | NodeOutcome::NotExecuted | NodeOutcome::Unknown => {
                known.lost.get_or_insert(at);
            }
        }
    }

    /// Returns since when the nodes that answer with votes are no majority; `None` while they are.
    pub(super) fn since(&self, quorum: Quorum) -> Option<Instant> {
        let mut lost: Vec<Instant> = self.nodes.iter().filter_map(|node| node.lost).collect();
        lost.sort_unstable();
        lost.get(quorum.tolerated()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{num::NonZeroUsize, time::Duration};

    fn at(secs: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(secs))
    }

    fn since(outage: &Outage) -> Option<Instant> {
        outage.since(Quorum::of(NonZeroUsize::new(3).unwrap()))
    }

    #[test]
    fn it_begins_when_the_majority_goes_and_ends_when_it_is_back() {
        let mut outage = Outage::new(3);
        outage.on_disconnected(0, at(1));
        assert_eq!(since(&outage), None);
        outage.on_disconnected(2, at(5));
        outage.on_disconnected(0, at(7));
        assert_eq!(since(&outage), Some(at(5)));
        outage.on_disconnected(1, at(8));
        outage.on_standing(2, true, at(9));
        assert_eq!(since(&outage), Some(at(8)));
        outage.on_standing(1, true, at(9));
        assert_eq!(since(&outage), None);
    }

    #[test]
    fn a_node_that_fails_each_request_is_of_no_use_though_it_votes() {
        let mut outage = Outage::new(3);
        for node in 0..2 {
            outage.on_standing(node, true, at(1));
            outage.on_outcome(node, NodeOutcome::NotExecuted, at(2));
            outage.on_standing(node, true, at(3));
        }
        assert_eq!(since(&outage), Some(at(2)));
        outage.on_outcome(0, NodeOutcome::Granted { counter: 1 }, at(4));
        assert_eq!(since(&outage), None);
    }
}
