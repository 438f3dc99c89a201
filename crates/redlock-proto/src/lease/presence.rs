//! Presence of the keys of a lease on the nodes, as the owner knows it.

use std::ops::{Deref, DerefMut};

use crate::{GiveBack, NodeOutcome, Vote, Votes};

/// The presence of the lease's key, or of all its keys, on each node.
#[derive(Debug)]
pub(super) struct NodePresences {
    // invariant: one entry per node, or none once the lease was released
    nodes: PresenceList,
    /// Whether there are several, of which a node may have a part.
    pub(super) are_several: bool,
}

/// An entry per node: in place for as many nodes as most clients have, because each lease has one.
#[derive(Clone, Debug)]
enum PresenceList {
    Few(u8, [NodePresence; FEW]),
    Many(Vec<NodePresence>),
}

/// The most nodes whose entries are in place: these take as much room as a vector does.
const FEW: usize = 7;

impl PresenceList {
    const EMPTY: Self = Self::Few(0, [NodePresence::NEVER; FEW]);

    /// Returns a list for `nodes` nodes that never had the key.
    fn never(nodes: usize) -> Self {
        match u8::try_from(nodes) {
            Ok(count) if nodes <= FEW => Self::Few(count, [NodePresence::NEVER; FEW]),
            _ => Self::Many(vec![NodePresence::NEVER; nodes]),
        }
    }
}

impl Deref for PresenceList {
    type Target = [NodePresence];

    fn deref(&self) -> &[NodePresence] {
        match self {
            Self::Few(count, nodes) => &nodes[..usize::from(*count)],
            Self::Many(nodes) => nodes,
        }
    }
}

impl DerefMut for PresenceList {
    fn deref_mut(&mut self) -> &mut [NodePresence] {
        match self {
            Self::Few(count, nodes) => &mut nodes[..usize::from(*count)],
            Self::Many(nodes) => nodes,
        }
    }
}

/// What a node has of a lease.
#[derive(Clone, Copy, Debug)]
struct NodePresence {
    key: Presence,
    /// Whether the owner waited in line there, so that the node must be told to let it go in any case.
    in_line: bool,
}

/// Whether a node has the lease's key, or all its keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Presence {
    /// It never had it: it was not asked, did not run the request, or refused.
    Never,
    /// It never had it, and is being asked for it again, or for the first time.
    Asked,
    /// It had it, and lost it.
    No,
    /// It has not all of several keys, and perhaps some.
    NotAll,
    /// It does, or the request for it is on its way over a connection that stands.
    Yes,
    /// It lost the key and is being given it again; what it says of an extension was asked before.
    Healing,
    /// It is unknown, and a request for it may arrive at any time.
    Unknown,
}

impl NodePresence {
    const NEVER: Self = Self {
        key: Presence::Never,
        in_line: false,
    };
}

impl NodePresences {
    /// Returns what nodes have after an attempt with these votes.
    pub(super) fn of(votes: &Votes) -> Self {
        let mut nodes = PresenceList::never(votes.iter().len());
        for GiveBack { node, tombstone } in votes.may_hold() {
            let in_line = matches!(
                votes.get(node),
                Some(Vote::Cast(NodeOutcome::InLine { .. }))
            );
            nodes[node] = NodePresence {
                key: match tombstone {
                    true => Presence::Unknown,
                    false if in_line => Presence::Never,
                    false => Presence::Yes,
                },
                in_line,
            };
        }
        Self {
            nodes,
            are_several: false,
        }
    }

    /// Returns whether a node never had the key, and is not being asked for it.
    pub(super) fn lacks(&self, node: usize) -> bool {
        self.key(node) == Some(Presence::Never)
    }

    /// Returns whether there is such a node.
    pub(super) fn are_lacking(&self) -> bool {
        self.nodes.iter().any(|node| node.key == Presence::Never)
    }

    /// Notes that a node that never had the key is being asked for it.
    pub(super) fn on_asked(&mut self, node: usize) {
        if let Some(key @ Presence::Never) = self.key_mut(node) {
            *key = Presence::Asked;
        }
    }

    fn key(&self, node: usize) -> Option<Presence> {
        self.nodes.get(node).map(|node| node.key)
    }

    fn key_mut(&mut self, node: usize) -> Option<&mut Presence> {
        self.nodes.get_mut(node).map(|node| &mut node.key)
    }

    /// Takes in an outcome of an acquire that became known after the attempt had been decided, or that of a healing.
    pub(super) fn on_late_outcome(&mut self, node: usize, outcome: NodeOutcome) {
        let Some(NodePresence { key, in_line }) = self.nodes.get_mut(node) else {
            return;
        };
        *in_line |= matches!(outcome, NodeOutcome::InLine { .. });
        *key = match (outcome, *key) {
            // What may still arrive stays known, whatever becomes of the requests after it.
            (NodeOutcome::Unknown, _) | (_, Presence::Unknown) => Presence::Unknown,
            (outcome, _) if outcome.holds() => Presence::Yes,
            (_, Presence::Healing) if self.are_several => Presence::NotAll,
            (_, Presence::Healing) => Presence::No,
            _ => Presence::Never,
        };
    }

    /// Takes in a node's answer to a round of extension of a lease, which is live or not.
    pub(super) fn on_extension_outcome(
        &mut self,
        node: usize,
        outcome: NodeOutcome,
        is_live: bool,
    ) {
        let lost = if self.are_several {
            Presence::NotAll
        } else {
            Presence::No
        };
        let Some(key) = self.key_mut(node) else {
            return;
        };
        match (outcome, *key) {
            // Where the outcome of the acquire is unknown, the node may take the key after this answer.
            // A node that has the key proves nothing: its address may lead to a server that was asked at another
            // address, too.
            (_, Presence::Asked | Presence::Healing | Presence::Unknown) => {}
            // Also of a lease that is lost: a node may come back with a key that it had lost.
            (outcome, _) if outcome.holds() => *key = Presence::Yes,
            (NodeOutcome::Refused { .. } | NodeOutcome::Missing, Presence::Yes) if is_live => {
                *key = lost;
            }
            _ => {}
        }
    }

    /// Returns whether a node that says that it does not have the key may be given it again.
    ///
    /// Not while a request for it is on its way that will say whether it has.
    /// Where an earlier one may still arrive, that stays known: the release tombstones the owner there.
    pub(super) fn may_be_healed(&self, node: usize) -> bool {
        matches!(
            self.key(node),
            Some(Presence::Never | Presence::No | Presence::NotAll | Presence::Unknown)
        )
    }

    /// Notes that a node is being given the key again.
    pub(super) fn on_healing(&mut self, node: usize) {
        if let Some(key @ (Presence::Never | Presence::No | Presence::NotAll)) = self.key_mut(node)
        {
            *key = Presence::Healing;
        }
    }

    /// Takes what is left of a lease that is over.
    pub(super) fn take(&mut self) -> LeftOver {
        LeftOver {
            keys: std::mem::replace(&mut self.nodes, PresenceList::EMPTY),
        }
    }
}

/// The keys that a lease which is over has left on the nodes, or may have.
#[derive(Clone, Debug)]
pub struct LeftOver {
    // invariant: one entry per node, or none
    keys: PresenceList,
}

impl LeftOver {
    /// Returns the nodes that may have the key.
    pub fn nodes(&self) -> impl Iterator<Item = GiveBack> + Clone + '_ {
        let nodes = self.keys.iter().enumerate();
        let may_have = |key| !matches!(key, Presence::Never | Presence::No);
        let give_back = nodes.filter(move |(_, node)| node.in_line || may_have(node.key));
        give_back.map(|(node, left)| GiveBack {
            node,
            tombstone: left.key == Presence::Unknown,
        })
    }
}
