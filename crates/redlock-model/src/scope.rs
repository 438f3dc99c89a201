//! How large a world is explored.

use std::{fmt, num::NonZeroUsize};

use redlock_proto::Quorum;

/// How large a world is explored: all of it, up to these numbers.
///
/// ```
/// use redlock_model::Scope;
///
/// let scope = Scope::new(3, 2, 1, 3).unwrap();
/// assert_eq!(scope.to_string(), "3 nodes, 2 clients, 1 crash, proposals up to 3");
/// assert!(Scope::new(9, 2, 1, 3).is_err());
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Scope {
    // invariant: within the MAX_ constants, and a state fits the encoding
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
    pub(crate) crashes: u8,
    pub(crate) proposals: u8,
}

impl Scope {
    /// The most nodes.
    pub const MAX_NODES: usize = 5;

    /// The most clients.
    pub const MAX_CLIENTS: usize = 4;

    /// The most crashes.
    pub const MAX_CRASHES: u8 = 3;

    /// The greatest proposal.
    pub const MAX_PROPOSALS: u8 = 9;

    /// The number of nodes.
    pub const fn nodes(self) -> usize {
        self.nodes
    }

    /// The number of clients.
    pub const fn clients(self) -> usize {
        self.clients
    }

    /// How often nodes lose their memory, in all.
    pub const fn crashes(self) -> u8 {
        self.crashes
    }

    /// The greatest proposal.
    pub const fn proposals(self) -> u8 {
        self.proposals
    }

    /// The greatest number that a counter can reach.
    ///
    /// Only a grant makes a number that was nowhere before, one greater than those there were, or a
    /// proposal; and every client is granted at most once by each node.
    pub(crate) fn greatest(self) -> u8 {
        let grants = u8::try_from(self.nodes * self.clients).unwrap_or(u8::MAX);
        self.proposals.saturating_add(grants).saturating_sub(1)
    }

    pub(crate) fn quorum(self) -> Quorum {
        Quorum::of(NonZeroUsize::new(self.nodes).expect("there is a node: `new` checks it"))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: usize, one: &str, more: &str| match number {
            0 => format!("no {one}"),
            1 => format!("1 {one}"),
            _ => format!("{number} {more}"),
        };
        write!(
            f,
            "{}, {}, {}, proposals up to {}",
            count(self.nodes, "node", "nodes"),
            count(self.clients, "client", "clients"),
            count(self.crashes.into(), "crash", "crashes"),
            self.proposals,
        )
    }
}
