//! An outage: the time since when the nodes that answer with votes are no majority.

use super::{super::Now, Nodes};
use crate::{Instant, NodeOutcome};

impl Nodes {
    /// Takes in that a node said where it stands: whether it votes.
    ///
    /// That it goes on to vote proves nothing: it may fail whatever it is asked for.
    pub(super) fn on_vote(&mut self, node: usize, votes: bool, at: Instant) {
        let node = &mut self.nodes[node];
        if !votes {
            node.lost.get_or_insert(at);
        } else if !node.session.votes {
            node.lost = None;
        }
        node.session.votes = votes;
    }

    /// Takes in that a node's outcome in an attempt became known.
    pub(in super::super) fn on_outcome(&mut self, node: usize, outcome: NodeOutcome, at: Instant) {
        let lost = &mut self.nodes[node].lost;
        match outcome {
            NodeOutcome::Granted { .. }
            | NodeOutcome::Refused { .. }
            | NodeOutcome::InLine { .. }
            | NodeOutcome::Missing => {
                *lost = None;
            }
            NodeOutcome::NotAVote { .. } | NodeOutcome::NotExecuted | NodeOutcome::Unknown => {
                lost.get_or_insert(at);
            }
        }
    }

    /// Returns since when the nodes that answer with votes are no majority; `None` while they are.
    pub(in super::super) fn outage(&self) -> Option<Instant> {
        let mut lost: Vec<Instant> = self.nodes.iter().filter_map(|node| node.lost).collect();
        lost.sort_unstable();
        lost.get(self.quorum.tolerated()).copied()
    }

    /// Returns whether the first connections that are still being made could complete a majority: whether there is an
    /// outage shows when they are made, or have failed.
    pub(in super::super) fn are_connecting(&self, now: Now) -> bool {
        let connecting = self.nodes.iter().filter(|node| !node.is_settled());
        let connecting = connecting.count();
        connecting > 0 && connecting + self.reachable(now) >= self.quorum.majority()
    }

    /// Returns whether too many nodes are quarantined beyond `end` for the others to be a majority.
    pub(in super::super) fn are_quarantined_beyond(&self, end: Instant, now: Now) -> bool {
        let beyond = self.all().filter(|node| {
            let vote = self.vote(*node, now.clock);
            let ready_in = vote.err().and_then(|reason| reason.ready_in());
            ready_in.is_some_and(|ready_in| now.clock + ready_in > end)
        });
        beyond.count() > self.quorum.tolerated()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::tests::three_nodes, *};

    fn at(secs: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(secs))
    }

    #[test]
    fn it_begins_when_the_majority_goes_and_ends_when_it_is_back() {
        let mut nodes = three_nodes();
        nodes.on_disconnected(0, "gone".into(), at(1));
        assert_eq!(nodes.outage(), None);
        nodes.on_disconnected(2, "gone".into(), at(5));
        nodes.on_disconnected(0, "gone".into(), at(7));
        assert_eq!(nodes.outage(), Some(at(5)));
        nodes.on_disconnected(1, "gone".into(), at(8));
        nodes.on_vote(2, true, at(9));
        assert_eq!(nodes.outage(), Some(at(8)));
        nodes.on_vote(1, true, at(9));
        assert_eq!(nodes.outage(), None);
    }

    #[test]
    fn a_node_that_fails_each_request_is_of_no_use_though_it_votes() {
        let mut nodes = three_nodes();
        for node in 0..2 {
            nodes.on_vote(node, true, at(1));
            nodes.on_outcome(node, NodeOutcome::NotExecuted, at(2));
            nodes.on_vote(node, true, at(3));
        }
        assert_eq!(nodes.outage(), Some(at(2)));
        nodes.on_outcome(0, NodeOutcome::Granted { counter: 1 }, at(4));
        assert_eq!(nodes.outage(), None);
    }
}
