//! Renewals for which the nodes take turns: each asks a majority, and two in a row ask all.

use super::{
    super::{FanOut, Now, context::Context},
    Held, Leases,
};

impl Leases {
    /// Returns the nodes that the renewal of a lease asks, if they take turns; none if it asks all.
    ///
    /// A majority decides, whichever it is, and a node that is left out keeps the key up to the renewal after this one:
    /// that is due after two thirds of the time to live, and asks this node first.
    ///
    /// All are asked if the renewal comes late, if the one before has failed, or if a node does not have the key yet.
    pub(super) fn turn(&mut self, id: u64, cx: &Context, now: Now) -> Vec<usize> {
        let take_turns = match cx.config.fan_out {
            FanOut::All => false,
            FanOut::Majority => true,
            FanOut::Adaptive => self.len() >= MANY,
        };
        let held = self.held.get_mut(id).filter(|_| take_turns);
        held.map(|held| held.turn(cx, now)).unwrap_or_default()
    }
}

impl Held {
    fn turn(&mut self, cx: &Context, now: Now) -> Vec<usize> {
        let (nodes, majority) = (cx.quorum().nodes(), cx.quorum().majority());
        let is_late = self.state.deadline() < now.clock + self.timing().ttl() / 2;
        let lacks = |node: usize| self.state.lacks(node) && cx.nodes.is_of_use(node, now);
        let is_spread = !cx.nodes.all().any(lacks);
        if is_late || self.has_failed || !is_spread || majority == nodes {
            return Vec::new();
        }
        let from = self.next % nodes;
        let order = (from..nodes).chain(0..from);
        let mut asked = Vec::with_capacity(majority);
        let of_use = order.filter(|node| cx.nodes.is_of_use(*node, now));
        asked.extend(of_use.take(majority));
        match asked.last() {
            Some(last) if asked.len() == majority => self.next = last + 1,
            _ => asked.clear(),
        }
        asked
    }
}

/// The number of leases from which a client has enough to do for its nodes to take turns.
const MANY: usize = 64;
