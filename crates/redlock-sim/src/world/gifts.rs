//! The messages of nodes to clients whose callers wait in line: on time, late, or lost.

use std::collections::{HashMap, VecDeque};

use redlock_proto::{Effect, Gift, InLine, NodeTime};

use super::{World, agenda::Due, owners::Gone};
use crate::{
    Moment, Plan, Violation,
    setup::{MS, Micros, micros},
};

/// The messages that are on their way, and what the callers asked for that they are about.
#[derive(Debug, Default)]
pub(super) struct Gifts {
    sent: HashMap<u32, (usize, Gift)>,
    next: u32,
    /// The owner of each round in which a client asked for a place in line, by its number, and for how long it would
    /// be given the key.
    asked: HashMap<(u64, u64), (u32, Micros)>,
    /// The messages of a call that is being watched.
    told: VecDeque<(u64, Gift)>,
}

impl World {
    /// A client wants to hear of nodes.
    pub(super) fn on_listen(&mut self, client: usize, effect: &Effect) {
        let Effect::Listen { number } = *effect else {
            return;
        };
        // Some may not subscribe, and wait as older clients do.
        if number.is_some() && self.random.chance(150) {
            return;
        }
        self.processes[client].number = number;
        if number.is_none() {
            return;
        }
        for node in 0..self.setup.nodes {
            self.listens_soon(client, node);
        }
    }

    /// A client that is connected to a node hears of it a little later, if it wants to.
    pub(super) fn listens_soon(&mut self, client: usize, node: usize) {
        let process = &self.processes[client];
        if process.number.is_some() {
            let at = self.now + self.random.between(200, 3 * MS);
            let life = process.life;
            self.agenda.add(at, Due::Listens { client, node, life });
        }
    }

    pub(super) fn on_listens(&mut self, client: usize, node: usize, life: u32) {
        let link = self.link(client, node);
        let process = &self.processes[client];
        let is_wanted = process.life == life && process.number.is_some();
        if is_wanted && self.links[link].machine.is_up() {
            let now = process.now(self.now);
            self.processes[client].client.on_listening(node, true, now);
            self.settle(client);
        }
    }

    /// Notes that an owner asks in this round for a place in line.
    pub(super) fn asks_for_a_place(&mut self, line: &InLine, owner: u32) {
        let asked = (line.place.client, line.round);
        self.gifts.asked.insert(asked, (owner, micros(line.grant)));
    }

    /// Returns the clients that subscribe to a server's messages.
    pub(super) fn subscribers(&self, server: usize) -> Vec<u64> {
        let node = self.setup.node_of(server);
        let clients = self.processes.iter().enumerate();
        let subscribers = clients.filter_map(|(client, process)| {
            let link = &self.links[self.link(client, node)];
            let is_up =
                link.machine.is_up() && (self.setup.named.is_none() || link.server == server);
            process.number.filter(|_| is_up)
        });
        subscribers.collect()
    }

    /// Takes the messages of a node's call, which is watched next.
    pub(super) fn take_messages(&mut self, node: usize) {
        let messages = self.servers[node].store.take_messages();
        let (given, first): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|(_, gift)| gift.counter > 0);
        self.gifts.told = given.into();
        for (number, gift) in first {
            self.send_gift(node, number, gift);
        }
    }

    /// Records what a node has given away, if that is what it did with the last request, and sends word of it.
    ///
    /// A key that is not free was not given away yet.
    pub(super) fn watch_gift(&mut self, node: usize, keys: &[usize], time: NodeTime) {
        let millis = time.as_millis();
        let Some((number, gift)) = self.gifts.told.front() else {
            return;
        };
        let number = *number;
        let owner = self.gifts.asked.get(&(number, gift.round)).copied();
        let Some((owner, grant)) = owner else {
            return;
        };
        let its = self.owners.get(owner);
        if its.line_over[node].is_none() {
            return;
        }
        let key = its.key;
        let server = &mut self.servers[node];
        if !keys.contains(&key) || server.shadow.kept(key, millis).next().is_some() {
            return;
        }
        let Some((_, gift)) = self.gifts.told.pop_front() else {
            return;
        };
        self.counters.gifts += 1;
        let its = self.owners.get(owner);
        let at = Moment::from_micros(self.now);
        let until = millis + grant / MS;
        let binds = |gone: Gone| Some(gone.address) == its.line_over[node] || gone.is_tombstoned;
        let gone = its.gone(node);
        let must_refuse =
            gone.is_some_and(|gone| binds(gone) && server.must_refuse(gone, self.now));
        if must_refuse {
            self.checker
                .report(at, Violation::Resurrected { node, key });
        }
        let its = self.owners.get_mut(owner);
        let (address, client) = (its.line_over[node].unwrap_or(node), its.client);
        its.take(node, address);
        its.promised[node] = server.clock.when((until + 1) * 1_000);
        server.shadow.give(key, owner, its.name, until);
        self.trace.line(self.now, || {
            format!(
                "node {node} gives key {key} to owner {owner} of client {}",
                client.0
            )
        });
        self.look_for_leftovers(node, key, millis);
        self.send_gift(node, number, gift);
    }

    fn send_gift(&mut self, node: usize, number: u64, gift: Gift) {
        let is_its = |process: &super::process::Process| process.number == Some(number);
        let Some(client) = self.processes.iter().position(is_its) else {
            return;
        };
        // Where one node is lost at most, the others bring what they say.
        let faulty = self.phase.is_faulty() && self.setup.plan != Plan::OneGone;
        let (server, node) = (node, self.setup.node_of(node));
        let link = &self.links[self.link(client, node)];
        let is_up = link.machine.is_up() && (self.setup.named.is_none() || link.server == server);
        if !is_up || faulty && self.random.chance(100) {
            self.counters.gifts_lost += 1;
            return;
        }
        let latest: Micros = if faulty && self.random.chance(100) {
            1_500 * MS
        } else {
            2 * MS
        };
        let at = self.now + self.random.between(200, latest);
        let message = self.gifts.next;
        self.gifts.next += 1;
        self.gifts.sent.insert(message, (node, gift));
        let life = self.processes[client].life;
        self.agenda.add(
            at,
            Due::Gift {
                client,
                life,
                message,
            },
        );
    }

    pub(super) fn on_gift(&mut self, client: usize, life: u32, message: u32) {
        let Some((node, gift)) = self.gifts.sent.remove(&message) else {
            return;
        };
        if self.processes[client].life == life {
            let now = self.processes[client].now(self.now);
            self.processes[client].client.on_gift(node, gift, now);
            self.settle(client);
        }
    }
}
