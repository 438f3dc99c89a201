use redlock_proto::{InformantId, Pair};

use super::{super::World, informants::told, messages::Message};
use crate::{
    Event,
    fault::{Failover, Fate, NamingFault},
    setup::{INFORMANTS, MS},
};

impl World {
    pub(in super::super) fn on_naming_fault(&mut self, node: usize, what: NamingFault) {
        let now = self.now;
        let nodes = self.setup.nodes;
        let informants = &mut self.naming.nodes[node];
        match what {
            NamingFault::FailOver(failover) => self.elect(node, failover),
            NamingFault::FallBehind => {
                if let [true, false] | [false, true] = informants.are_masters {
                    let master = usize::from(informants.are_masters[1]);
                    self.servers[node + master * nodes].copy();
                }
            }
            NamingFault::Silence { length } => {
                let server = node + informants.newest().pair.server * nodes;
                self.counters.freezes += 1;
                let server = &mut self.servers[server];
                server.frozen_until = server.frozen_until.max(now + length);
            }
            NamingFault::Apart { informant, length } => {
                let until = &mut informants.all[informant].apart_until;
                *until = (*until).max(now + length);
            }
            NamingFault::StandStill { informant, length } => {
                let until = &mut informants.all[informant].still_until;
                *until = (*until).max(now + length);
            }
            NamingFault::LoseFile { informant } => self.lose_file(node, informant),
            NamingFault::Reset => informants.ghosts = 0,
            NamingFault::Demote { informant } => self.demote(node, informant),
            NamingFault::Deaf { client, of, length } => {
                let deaf = informants.deaf[client].iter_mut().zip(of);
                for (until, _) in deaf.filter(|(_, is_deaf)| *is_deaf) {
                    *until = (*until).max(now + length);
                }
            }
        }
    }

    /// The least majority of informants elects one of them, under an epoch that none of them has seen.
    fn elect(&mut self, node: usize, failover: Failover) {
        let informants = &mut self.naming.nodes[node];
        let can = |place: &usize| informants.is_among_others(*place, self.now);
        let from = |first: usize| (0..INFORMANTS).map(move |next| (first + next) % INFORMANTS);
        // One that leads a failover already begins no other.
        let may_lead = |place: &usize| can(place) && !informants.all[*place].leads;
        let leader = from(failover.leader).find(may_lead);
        let voter = from(failover.voter)
            .filter(|it| Some(*it) != leader)
            .find(can);
        let (Some(leader), Some(voter)) = (leader, voter) else {
            self.trace.line(self.now, || {
                format!("no majority of the informants of node {node} can elect a leader")
            });
            return;
        };
        let all = &mut informants.all;
        let epoch = all[leader].seen.max(all[voter].seen) + 1;
        all[leader].seen = epoch;
        all[voter].seen = epoch;
        all[leader].leads = true;
        let id = all[leader].id;
        self.trace.line(self.now, || {
            format!(
                "informants {leader} and {voter} of node {node} elect {leader} for epoch {epoch}"
            )
        });
        let promotes = Message::Promotes {
            node,
            leader,
            id,
            epoch,
            failover,
        };
        self.send(self.now + failover.promotes_in, promotes);
    }

    /// A leader promotes the other server, unless it has lost its file or has heard of a later failover.
    ///
    /// A server that takes itself for a master stays as it is.
    pub(super) fn on_promotion(
        &mut self,
        (node, leader): (usize, usize),
        (id, epoch): (InformantId, u64),
        failover: Failover,
    ) {
        let informant = self.naming.nodes[node].all[leader];
        let old = informant.advertised().server;
        let to = 1 - old;
        let [old_server, server] = [old, to].map(|place| node + place * self.setup.nodes);
        if informant.id != id || informant.pair.epoch >= epoch {
            return;
        }
        if informant.still_until > self.now {
            let promotes = Message::Promotes {
                node,
                leader,
                id,
                epoch,
                failover,
            };
            return self.send(informant.still_until, promotes);
        }
        // What was broken is not made worse once everything is repaired.
        if !self.servers[server].is_up || !self.phase.is_faulty() {
            return self.naming.nodes[node].all[leader].end_failover();
        }
        self.promote(node, (old_server, server));
        let pair = Pair { server: to, epoch };
        self.trace.line(self.now, || {
            format!(
                "informant {leader} of node {node} has made a master of {}",
                told(pair)
            )
        });
        let informant = &mut self.naming.nodes[node].all[leader];
        informant.pair.epoch = epoch;
        informant.promoted = Some(to);
        let ends = Message::Ends { node, leader, pair };
        self.send(self.now + failover.ends_in, ends);
        if let Some(demotes_in) = failover.demotes_in {
            let at = self.now + failover.ends_in + demotes_in;
            let informant = leader;
            self.send(at, Message::Demotes { node, informant });
        }
    }

    /// Makes a server a master, with what it has of the other one's data if it was a replica.
    fn promote(&mut self, node: usize, (old, server): (usize, usize)) {
        let store = &mut self.servers[old].store;
        if !store.has_marks() {
            // No operator vouches for it any more: clients may use the other one from now on.
            store.flush();
        }
        let are_masters = &mut self.naming.nodes[node].are_masters;
        let was_master = std::mem::replace(&mut are_masters[server / self.setup.nodes], true);
        self.counters.failovers += 1;
        if was_master {
            self.counters.failbacks += 1;
            return;
        }
        let data = self.servers[old].replicated();
        self.servers[server].take_data(data);
        self.observe(&Event::Forgot { node: server });
    }

    /// The leader of a failover names the server that it has promoted.
    pub(super) fn on_failover_end(&mut self, node: usize, leader: usize, pair: Pair<usize>) {
        let informant = &mut self.naming.nodes[node].all[leader];
        if informant.pair.epoch == pair.epoch && informant.promoted == Some(pair.server) {
            informant.pair = pair;
            informant.end_failover();
        }
    }

    /// An informant makes the server that it does not name a replica of the one that it names.
    pub(super) fn demote(&mut self, node: usize, informant: usize) {
        let informants = &self.naming.nodes[node];
        let by = informants.all[informant];
        let named = by.advertised().server;
        let other = 1 - named;
        let server = node + other * self.setup.nodes;
        // Nothing undoes what informants that know less do once everything is repaired.
        let may = self.phase.is_faulty() || by.advertised() == informants.newest().advertised();
        if !may || informants.are_masters != [true; 2] || !self.servers[server].is_up {
            return;
        }
        let at = self.servers[server].frozen_until.max(by.still_until);
        if at > self.now {
            return self.send(at, Message::Demotes { node, informant });
        }
        self.naming.nodes[node].are_masters[other] = false;
        self.counters.demotions += 1;
        self.trace.line(self.now, || {
            let pair = told(by.advertised());
            format!(
                "informant {informant} of node {node} makes the other server a replica of {pair}"
            )
        });
        // The connections of clients end with that, unless the informant may not end them.
        if self.random.chance(700) {
            for link in 0..self.links.len() {
                if self.links[link].server == server {
                    let unnoticed = self.random.between(MS / 2, 2 * MS);
                    self.cut(link, Fate::Dropped, unnoticed);
                }
            }
        }
    }

    /// Repairs the naming of servers: the informants reach each other and all clients, and name a master soon.
    pub(in super::super) fn repair_naming(&mut self) {
        for node in 0..self.naming.nodes.len() {
            let informants = &mut self.naming.nodes[node];
            for informant in &mut informants.all {
                informant.apart_until = 0;
                informant.still_until = 0;
            }
            informants.deaf.fill([0; INFORMANTS]);
            informants.ghosts = 0;
            let pair = informants.newest().advertised();
            let Pair { server, epoch } = pair;
            let mut newest = informants.all.iter().filter(|it| it.pair.epoch == epoch);
            let agree = newest.all(|informant| informant.advertised() == pair);
            if agree && informants.are_masters[server] {
                continue;
            }
            // A majority finds that its master is a replica, and elects a leader for that; so it does where one that
            // lost its file has elected a leader for this epoch again, for the other server.
            let seen = informants.all.map(|informant| informant.seen);
            let epoch: u64 = seen.into_iter().fold(epoch, u64::max) + 1;
            let server = usize::from(informants.are_masters[1]);
            let pair = Pair { server, epoch };
            let leader = &mut informants.all[0];
            leader.pair = pair;
            leader.end_failover();
            leader.seen = epoch;
            self.counters.failovers += 1;
            self.trace.line(self.now, || {
                format!("informant 0 of node {node} names {}", told(pair))
            });
        }
    }
}
