//! What is true of the world at one moment.

use crate::Scope;

/// The world: its nodes, its clients, and how often a node has lost its memory.
///
/// Entries beyond the scope's numbers stay as they are at first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct State {
    pub(crate) nodes: [Node; Scope::MAX_NODES],
    pub(crate) clients: [Client; Scope::MAX_CLIENTS],
    pub(crate) crashes: u8,
}

impl State {
    /// A node forgets everything, and that it ever voted.
    pub(crate) fn crash(&mut self, node: usize) {
        self.crashes += 1;
        self.nodes[node] = Node {
            standing: Standing::Quarantined,
            ..Node::default()
        };
    }
}

/// A node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Node {
    /// Whose key it has, if it has one.
    pub(crate) key: Option<u8>,
    pub(crate) counter: u8,
    /// What was found for it when it had lost its counters; 0 if it never did.
    pub(crate) floor: u8,
    pub(crate) standing: Standing,
    /// What was read on its behalf, by node.
    pub(crate) readings: [Option<Reading>; Scope::MAX_NODES],
}

impl Node {
    /// What a survey reads here: no grant of this node is below it.
    pub(crate) fn known(&self) -> u8 {
        self.counter.max(self.floor)
    }
}

/// Whether a node's grants are votes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Standing {
    /// They are.
    #[default]
    Voting,
    /// It lost its memory, and attempts from before may be undecided.
    Quarantined,
    /// Its quarantine has ended, but its floor is not known yet.
    Aged,
}

/// What was read of one node on behalf of another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Reading {
    pub(crate) voting: bool,
    pub(crate) known: u8,
}

/// A client, which makes one attempt.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    /// The same for all nodes.
    pub(crate) proposal: u8,
    /// The greatest token that was handed out before it started.
    pub(crate) before: u8,
    /// Its token, once it is known; what it writes back, before that.
    pub(crate) token: u8,
    /// How far it is with each node.
    pub(crate) at: [Exchange; Scope::MAX_NODES],
}

impl Client {
    /// The nodes with which it is that far.
    pub(crate) fn nodes(&self, is: impl Fn(Exchange) -> bool) -> NodeSet {
        let mut nodes = NodeSet::default();
        for (node, exchange) in self.at.iter().enumerate() {
            if is(*exchange) {
                nodes.insert(node);
            }
        }
        nodes
    }

    pub(crate) fn is_undecided(&self) -> bool {
        matches!(self.phase, Phase::Acquiring | Phase::WritingBack)
    }
}

/// How far a client is.
///
/// In each phase but the first, requests that were sent may still arrive.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Phase {
    /// It has not started.
    #[default]
    Idle,
    /// It has asked every node for the key, and collects votes.
    Acquiring,
    /// It knows its token, and collects confirmations that it is stored.
    WritingBack,
    /// It has its token.
    Done,
    /// It has given up.
    Failed,
}

/// How far a client is with one node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Exchange {
    /// Nothing comes of it any more: refused, not a vote, lost, or not needed.
    #[default]
    Over,
    /// The acquire is on its way.
    Asked,
    /// The node granted, by a vote with this counter.
    Vote(u8),
    /// The write-back is on its way.
    Writing,
    /// The node confirmed the write-back.
    Stored,
}

impl Exchange {
    pub(crate) fn is_vote(self) -> bool {
        matches!(self, Self::Vote(_))
    }

    pub(crate) fn is_stored(self) -> bool {
        self == Self::Stored
    }
}

/// A set of nodes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct NodeSet(
    // invariant: one bit per node, none beyond MAX_NODES
    u8,
);

impl NodeSet {
    /// The number of sets.
    pub(crate) const COUNT: usize = 1 << Scope::MAX_NODES;

    pub(crate) fn insert(&mut self, node: usize) {
        self.0 |= 1 << node;
    }

    pub(crate) fn contains(self, node: usize) -> bool {
        self.0 >> node & 1 == 1
    }

    /// Its number among all sets, below [`COUNT`](Self::COUNT).
    pub(crate) fn number(self) -> usize {
        self.0.into()
    }

    /// All that are in it, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..Scope::MAX_NODES).filter(move |node| self.contains(*node))
    }

    /// Every set of these nodes, itself first and the empty one last.
    pub(crate) fn subsets(self) -> impl Iterator<Item = Self> {
        let mut next = Some(self.0);
        std::iter::from_fn(move || {
            let set = next?;
            next = set.checked_sub(1).map(|set| set & self.0);
            Some(Self(set))
        })
    }
}

impl FromIterator<usize> for NodeSet {
    fn from_iter<I: IntoIterator<Item = usize>>(nodes: I) -> Self {
        let mut set = Self::default();
        for node in nodes {
            set.insert(node);
        }
        set
    }
}
