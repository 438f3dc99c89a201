//! The quorum of nodes, their clocks and their counters: all that makes a vote of an answer.

mod clocks;
mod key_verdict;
mod node_answer;
mod survey;

use std::num::NonZeroUsize;

pub(crate) use self::clocks::{Agreement, Baseline};
pub use self::{
    clocks::{ClockReading, Clocks},
    key_verdict::KeyVerdict,
    node_answer::{NodeAnswer, NotAVote},
    survey::{Counters, Floor, Survey},
};

/// The number of nodes, and the number that makes a strict majority.
///
/// There is no way to ask for less than a majority.
/// Two sets of votes must always share a node, because that shared node is what keeps two holders apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Quorum {
    nodes: NonZeroUsize,
}

impl Quorum {
    /// Returns the quorum of `nodes` nodes.
    pub const fn of(nodes: NonZeroUsize) -> Self {
        Self { nodes }
    }

    /// Returns the number of nodes.
    pub const fn nodes(self) -> usize {
        self.nodes.get()
    }

    /// Returns the number of nodes that make a strict majority.
    pub const fn majority(self) -> usize {
        self.nodes.get() / 2 + 1
    }

    /// Returns how many nodes may be missing before no majority is left.
    pub const fn tolerated(self) -> usize {
        self.nodes.get() - self.majority()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// redlock-universal took the quorum from its caller, and one of three was enough.
    // Shows: T1.3.
    #[test]
    fn s10_two_majorities_always_share_a_node() {
        for nodes in 1..=1_000 {
            let quorum = Quorum::of(NonZeroUsize::new(nodes).unwrap());
            assert!(2 * quorum.majority() > nodes, "of {nodes}");
            assert!(quorum.majority() <= nodes, "of {nodes}");
            assert_eq!(quorum.majority() + quorum.tolerated(), nodes);
        }
    }
}
