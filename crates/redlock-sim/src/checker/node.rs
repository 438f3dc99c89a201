//! Nodes: which have lost what they knew, and whether they may vote again.

use super::{Checker, key::Key};
use crate::{Moment, Violation};

impl Checker {
    /// A node lost data.
    pub(super) fn forgot(&mut self, at: Moment, node: usize) {
        // One that has not voted since it lost data, or since it was started again, has no vote of later to forget.
        let since = self.restarted.get(&node).copied();
        if self.lost.insert(node) {
            self.forgot.insert(node, since.unwrap_or(at));
        }
    }

    /// A node was told a floor, and votes from now on.
    ///
    /// The order of tokens begins anew if so many were out that no majority was left to be asked, and if wall clocks are
    /// too far apart to stand in for what the others knew.
    /// A node that was started again is out as much as one that lost its counters: nobody can tell them apart.
    pub(super) fn opened(&mut self, node: usize) {
        let out = self.lost.len()
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

    /// A node votes, which it must not before leases from before its loss have ended, nor before it was told a floor.
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
