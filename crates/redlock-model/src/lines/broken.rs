//! What nodes do that break a rule.

use super::{
    LineMutation,
    node::{Ask, Done, Nodes, What},
    state::{Entry, Node, Owner, owners},
};

impl Nodes {
    /// Returns what a node does, with the rule of the check broken, if that is a rule of nodes.
    pub(super) fn answer(&self, node: Node, ask: Ask) -> Done {
        match self.check.mutation {
            Some(LineMutation::GivenInQuarantine) => {
                let is_quarantined = node.is_quarantined;
                let voting = Node {
                    is_quarantined: false,
                    ..node
                };
                let mut done = self.decide(voting, ask);
                done.node.is_quarantined = is_quarantined;
                done
            }
            Some(LineMutation::EntryKeptAfterGift) => {
                let mut done = self.decide(node, ask);
                if let Some((given, _)) = done.gift {
                    *done.node.entry_mut(given) = node.entry(given);
                }
                done
            }
            Some(LineMutation::SignNotLookedAt) => {
                let is_gone = |owner: &Owner| node.entry(*owner) == Entry::Ended;
                let gone: Vec<Owner> = owners().filter(is_gone).collect();
                let mut signed = node;
                for owner in &gone {
                    *signed.entry_mut(*owner) = Entry::Waits;
                }
                let mut done = self.decide(signed, ask);
                for owner in gone.into_iter().filter(|owner| owner.by != ask.owner.by) {
                    let entry = done.node.entry_mut(owner);
                    if *entry == Entry::Waits {
                        *entry = Entry::Ended;
                    }
                }
                done
            }
            Some(LineMutation::DeadHeadNotSkipped) if has_dead_head(node, ask) => Done {
                node: left_free(node, ask),
                granted: None,
                gift: None,
            },
            _ => self.decide(node, ask),
        }
    }
}

/// Returns whether a request finds or leaves the key free, and the first in line waits no longer.
fn has_dead_head(node: Node, ask: Ask) -> bool {
    let is_free = match ask.what {
        What::Acquire | What::Late(_) => node.key.is_none(),
        What::Release => node.key.is_none_or(|holder| holder == ask.owner),
        What::Extend(_) => false,
    };
    let is_dead = |owner: Owner| node.entry(owner) == Entry::Ended;
    is_free && node.in_line().next().is_some_and(is_dead)
}

/// Returns a node that has carried out a request and gives its free key to none.
fn left_free(mut node: Node, ask: Ask) -> Node {
    *node.entry_mut(ask.owner) = match ask.what {
        What::Acquire => Entry::Waits,
        What::Late(_) => Entry::First,
        What::Extend(_) | What::Release => Entry::None,
    };
    node.key = None;
    node
}
