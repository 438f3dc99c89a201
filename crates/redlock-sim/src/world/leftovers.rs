//! Keys that were given up: whether the nodes that have them were told, and whether they are gone then.

use redlock_proto::{JobVerb, Request, Verb};

use super::{World, link::Tag, owners::Owner, repair::SOON};
use crate::{Event, Moment, Violation};

impl World {
    /// A client has done all it wants to do for now: whatever it gave up meanwhile, it must have told every node
    /// that has the key or may take it.
    pub(super) fn look_for_forgotten(&mut self, client: usize) {
        while let Some(owner) = self.processes[client].given_up.pop() {
            if self.owners.get(owner).stays {
                continue;
            }
            for node in 0..self.setup.nodes {
                if !self.owners.get(owner).is_told(node) && self.may_have(client, node, owner) {
                    let key = self.owners.get(owner).key;
                    let at = Moment::from_micros(self.now);
                    self.checker.report(at, Violation::Forgotten { node, key });
                }
            }
        }
    }

    /// Whether a node has an owner's key, or a request that may take it is on its way.
    fn may_have(&mut self, client: usize, node: usize, owner: u32) -> bool {
        let server = &self.servers[node];
        let key = self.owners.get(owner).key;
        let millis = server.time(self.now).as_millis();
        let kept = server.shadow.kept(key, millis);
        if kept.is_some_and(|kept| kept.owner == owner && !kept.is_old) {
            return true;
        }
        let link = self.link(client, node);
        let this = &self.links[link];
        let is_queued = this
            .queue
            .iter()
            .any(|op| op.owner == Some(owner) && takes(&op.request));
        if is_queued {
            return true;
        }
        if this.out.is_empty() && !self.calls.has_late() {
            return false;
        }
        let takes = |(tag, request): (&Tag, &Request)| tag.owner == Some(owner) && takes(request);
        self.calls.unexecuted(link).any(|call| {
            let mut asked = call.tags.iter().zip(&call.requests);
            asked.any(takes)
        })
    }

    /// Where nothing goes wrong any more, a key that was given up is gone soon, or after its time to live if its
    /// node could not be told.
    pub(super) fn look_for_leftovers(&mut self, node: usize, key: usize, millis: u64) {
        let Some(repaired) = self.phase.repaired() else {
            return;
        };
        let Some(kept) = self.servers[node].shadow.kept(key, millis) else {
            return;
        };
        let owner = self.owners.get(kept.owner);
        let (client, life) = owner.client;
        let is_killed = self.processes[client].life != life;
        let Some(over) = owner.over.filter(|_| !owner.stays && !is_killed) else {
            return;
        };
        let reconnected = self.reconnected_by(repaired);
        // A release is owed for as long as the key could stay when it was asked for; a node that could not be
        // told before keeps whatever arrives late for its time to live, as it does what comes back with old
        // data.
        let was_owed = over + owner.ttl - owner.ttl / 50 > reconnected;
        if !was_owed || kept.is_old || self.has_forgotten(node, owner) {
            return;
        }
        let due = Moment::from_micros(over.max(reconnected) + SOON);
        self.observe(&Event::KeyFound { node, key, due });
    }

    /// Whether a node was told to let an owner's key go and knows nothing of it any more: it lost its data, or its
    /// clock was set.
    fn has_forgotten(&self, node: usize, owner: &Owner) -> bool {
        let server = &self.servers[node];
        let gone = owner.gone(node);
        gone.is_some_and(|gone| gone.life != server.life || server.was_set_since(gone.at))
    }
}

/// Whether a request may take a key.
const fn takes(request: &Request) -> bool {
    matches!(
        request,
        Request::Lock {
            verb: Verb::Acquire { .. } | Verb::Heal { .. },
            ..
        } | Request::Job {
            verb: JobVerb::Claim { .. },
            ..
        }
    )
}
