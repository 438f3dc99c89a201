//! Nodes: which have lost what they knew, and whether they may vote again.

use super::{Checker, key::Key};
use crate::{Moment, Violation};

impl Checker {
    /// Records that a node lost data.
    pub(super) fn forgot(&mut self, at: Moment, node: usize) {
        // A node that has not voted since its last loss or restart has no newer vote to forget.
        let since = self.restarted.get(&node).copied();
        if self.lost.insert(node) {
            self.forgot.insert(node, since.unwrap_or(at));
        }
    }

    /// Records that a node was told a floor, and votes from now on.
    ///
    /// The order of tokens starts over if the nodes that kept their counters were no majority.
    /// It does so only where wall clocks are too far apart to stand in for the lost counters.
    /// A node that was started again counts as one that lost its counters: clients cannot tell them apart.
    /// So does a duplicate: the client need not know that its address leads to another node's server only for a while.
    pub(super) fn opened(&mut self, node: usize, duplicates: usize) {
        let out = duplicates
            + self.lost.len()
            + self
                .restarted
                .keys()
                .filter(|node| !self.lost.contains(node))
                .count();
        if out > self.rules.tolerated && self.rules.skew > self.rules.max_ttl {
            self.keys.values_mut().for_each(Key::forget_tokens);
        }
        self.lost.remove(&node);
        self.restarted.remove(&node);
    }

    /// Judges a vote: too early while leases from before the node's loss last, or before the node was told a floor.
    pub(super) fn voted(&mut self, at: Moment, node: usize) {
        if let Some(forgot) = self.restarted.get(&node).copied() {
            self.report(at, Violation::EarlyVote { node, forgot });
        } else if let Some(forgot) = self.forgot.get(&node).copied()
            && (at < forgot + self.rules.max_ttl || self.lost.contains(&node))
        {
            self.report(at, Violation::EarlyVote { node, forgot });
        }
    }
}
