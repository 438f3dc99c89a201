//! Keys that were given up: whether the nodes that have them were told, and whether they are gone then.
//!
//! A client knows addresses, not servers: it lets a key go over the address over which that was taken.
//! If the address leads elsewhere by then, what is there has no such key, says so, and need not be told; the server that
//! has the key cannot be told.
//! So a key may stay if the address over which it was taken was rerouted since its owner's attempt began, and never
//! longer than its time to live.

use redlock_proto::{JobVerb, Request, Verb};

use super::{World, owners::Owner, repair::SOON, server::Server, shadow::Kept};
use crate::{Event, Moment, Violation, setup::Micros};

impl World {
    /// A client has done all it wants to do for now: whatever it gave up meanwhile, it must have told every node
    /// that has the key or may take it.
    pub(super) fn look_for_forgotten(&mut self, client: usize) {
        while let Some(owner) = self.processes[client].given_up.pop() {
            if self.owners.get(owner).stays {
                continue;
            }
            for address in 0..self.setup.nodes {
                let is_told = self.owners.get(owner).is_told(address);
                if !is_told && self.may_have(client, address, owner) {
                    let (node, key) = (address, self.owners.get(owner).key);
                    let at = Moment::from_micros(self.now);
                    self.checker.report(at, Violation::Forgotten { node, key });
                }
            }
        }
    }

    /// Returns whether a node took an owner's key over an address and has it, or a request that may take it is on its
    /// way there.
    fn may_have(&self, client: usize, address: usize, owner: u32) -> bool {
        let taken = self.owners.get(owner);
        let has = |(node, server): (usize, &Server)| {
            let millis = server.time(self.now).as_millis();
            let is_its = |kept: &Kept| kept.owner == owner && !kept.is_old;
            let has_it = |key: &usize| server.shadow.kept(*key, millis).any(is_its);
            taken.taken_over(node) == Some(address)
                && !self.was_rerouted(node, taken)
                && self.setup.keys_of(taken.key).iter().any(has_it)
        };
        if self.servers.iter().enumerate().any(has) {
            return true;
        }
        let link = self.link(client, address);
        let this = &self.links[link];
        let is_its = |request: &Request| self.owner_of(request) == Some(owner) && takes(request);
        if this.machine.unsent().any(is_its) {
            return true;
        }
        if this.out.is_empty() && !self.calls.has_late() {
            return false;
        }
        self.calls.unexecuted(link).any(|call| {
            let mut asked = call.owners.iter().zip(&call.requests);
            asked.any(|(of, request)| *of == Some(owner) && takes(request))
        })
    }

    /// Where nothing goes wrong any more, a key that was given up is gone soon, or after its time to live if its
    /// node could not be told.
    pub(super) fn look_for_leftovers(&mut self, node: usize, key: usize, millis: u64) {
        let Some(repaired) = self.phase.repaired() else {
            return;
        };
        let kept: Vec<Kept> = self.servers[node]
            .shadow
            .kept(key, millis)
            .copied()
            .collect();
        for kept in kept {
            self.look_for_leftover((node, key), kept, repaired);
        }
    }

    fn look_for_leftover(&mut self, (node, key): (usize, usize), kept: Kept, repaired: Micros) {
        let owner = self.owners.get(kept.owner);
        let (client, life) = owner.client;
        let is_killed = self.processes[client].life != life;
        let Some(over) = owner.over.filter(|_| !owner.stays && !is_killed) else {
            return;
        };
        if self.was_rerouted(node, owner) {
            return;
        }
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

    /// Returns whether the address over which a node took an owner's key may have led elsewhere when it was to let it
    /// go.
    fn was_rerouted(&self, node: usize, owner: &Owner) -> bool {
        let (client, _) = owner.client;
        let rerouted = |address| self.links[self.link(client, address)].rerouted;
        let rerouted = owner.taken_over(node).and_then(rerouted);
        rerouted.is_some_and(|at| at >= owner.started)
    }

    /// Returns whether a node was told to let an owner's key go and knows nothing of it any more: it lost its data, or
    /// its clock was set.
    fn has_forgotten(&self, node: usize, owner: &Owner) -> bool {
        let server = &self.servers[node];
        let gone = owner.gone(node);
        gone.is_some_and(|gone| gone.life != server.life || server.was_set_since(gone.at))
    }
}

/// Returns whether a request may take a key.
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
