//! Presence of the keys of a lease on one node, as the owner knows it.

use crate::GiveBack;

/// Whether a node has the lease's key, or all its keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Presence {
    No,
    /// It has not all of several keys, and perhaps some.
    NotAll,
    /// It does, or the request for it is on its way over a connection that stands.
    Yes,
    /// It lost the key and is being given it again; what it says of an extension was asked before.
    Healing,
    /// Nobody knows, and a request for it may arrive at any time.
    Unknown,
}

/// The keys that a lease which is over has left on the nodes, or may have.
#[derive(Clone, Debug)]
pub struct LeftOver {
    // invariant: one entry per node, or none
    pub(super) keys: Vec<Presence>,
}

impl LeftOver {
    /// Returns the nodes that may have the key.
    pub fn nodes(&self) -> impl Iterator<Item = GiveBack> + Clone + '_ {
        let nodes = self.keys.iter().enumerate();
        let give_back = nodes.filter(|(_, key)| **key != Presence::No);
        give_back.map(|(node, key)| GiveBack {
            node,
            tombstone: *key == Presence::Unknown,
        })
    }
}
