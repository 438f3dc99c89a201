//! Calls: what nodes do with them, whether that is right, and how clients hear of it.

use std::sync::Arc;

use redlock_proto::{
    Answer, CountedKey, Done, Lock, LockMode, NodeTime, NodeVerb, Reply, Request, RequestError,
    Verb,
};

use super::{
    World,
    agenda::Due,
    failing::call_but,
    link::Call,
    owners::Gone,
    said::{is_vote, said},
    shadow::{Asked, wrong},
    ticks::as_lock,
};
use crate::{
    Event, Moment, Violation,
    setup::{MOST_KEYS, Micros, micros},
};

impl World {
    /// The first call on its way over a connection reaches its node.
    pub(super) fn on_arrival(&mut self, link: usize, conn: u32) {
        let this = &mut self.links[link];
        if this.conn != conn || this.is_severed {
            return;
        }
        let node = this.server;
        let not_before = this.hole_out.max(self.servers[node].frozen_until);
        if not_before > self.now {
            self.agenda.add(not_before, Due::Arrive { link, conn });
            return;
        }
        if this.out.is_empty() {
            return;
        }
        if let Some(length) = self.servers[node].seizes.take() {
            // It has read its clock, and does the rest when it goes on.
            let server = &mut self.servers[node];
            server.seized = Some((link, conn, self.now));
            server.frozen_until = self.now + length;
            self.counters.seizures += 1;
            self.agenda
                .add(self.now + length, Due::Arrive { link, conn });
            return;
        }
        let Some(call) = self.links[link].out.pop_front() else {
            return;
        };
        let seized = self.servers[node].seized.take();
        let is_seized = |(of, on, _): &(usize, u32, Micros)| (*of, *on) == (link, conn);
        let began = seized.filter(is_seized).map_or(self.now, |(.., at)| at);
        self.execute(node, call, began);
        let delay = self.delay();
        let this = &mut self.links[link];
        this.back.push_back(call);
        this.last_back = this.last_back.max(self.now + delay);
        self.agenda.add(this.last_back, Due::Answer { link, conn });
    }

    /// A call whose connection is gone reaches its node all the same.
    pub(super) fn on_late_arrival(&mut self, number: u32, serial: u32) {
        let Some(call) = self.calls.find(number, serial).filter(|call| call.is_late) else {
            return;
        };
        let (client, node) = (call.link / self.setup.nodes, call.server);
        let server = &self.servers[node];
        let arrives = server.is_up && server.crashes == call.crashes;
        if arrives && server.frozen_until > self.now {
            let at = server.frozen_until;
            self.agenda.add(
                at,
                Due::ArriveLate {
                    call: number,
                    serial,
                },
            );
            return;
        }
        if arrives {
            self.counters.late += 1;
            self.trace.line(self.now, || {
                format!("a call of client {client} arrives late at node {node}")
            });
            self.servers[node].seized = None;
            self.execute(node, number, self.now);
        }
        self.calls.set_late(number, false);
        let call = self.calls.get_mut(number);
        call.is_executed = true;
        if call.is_over {
            self.calls.take(number);
        }
    }

    /// The first answer on its way back over a connection reaches its client.
    pub(super) fn on_answer(&mut self, link: usize, conn: u32) {
        let this = &mut self.links[link];
        if this.conn != conn || this.is_severed {
            return;
        }
        if this.hole_back > self.now {
            let at = this.hole_back;
            self.agenda.add(at, Due::Answer { link, conn });
            return;
        }
        let Some(number) = this.back.pop_front() else {
            return;
        };
        let mut call = self.calls.take(number);
        let answer = call.answer.take();
        let (client, _) = self.ends(link);
        self.on_answered(link, &call, answer);
        self.carry_out(link);
        self.settle(client);
    }

    /// A link hears what came of a call.
    fn on_answered(&mut self, link: usize, call: &Call, answer: Option<Answer>) {
        let now = self.instant(link);
        let (client, _) = self.ends(link);
        let sent = self.processes[client].now(call.sent).clock;
        let machine = &mut self.links[link].machine;
        match (call.id, answer) {
            (None, Some(answer)) => machine.on_connected(answer, sent, now),
            (None, None) => machine.on_lost(refused(), now),
            (Some(id), None) => {
                let error = RequestError::not_executed(refused());
                machine.on_call_failed(id, &error, false, now);
                if call.is_by_replica {
                    machine.on_wrong_server(refused(), now);
                }
            }
            (Some(id), Some(answer)) => {
                let said = said(call.server, &call.requests, &call.owners, &answer);
                machine.on_answer(id, answer, now);
                self.tell(link, said);
            }
        }
    }

    /// A node does what a call asks, by what its clock showed at `began`, and is watched while it does.
    fn execute(&mut self, node: usize, number: u32, began: Micros) {
        let call = self.calls.get_mut(number);
        call.is_executed = true;
        call.server = node;
        if self.phase.is_faulty() && self.random.chance(self.setup.net.refused) {
            self.counters.refusals += 1;
            return;
        }
        if self.is_replica(node) {
            self.calls.get_mut(number).is_by_replica = true;
            self.counters.by_replicas += 1;
            return;
        }
        let subscribers = self.subscribers(node);
        let call = self.calls.get_mut(number);
        let of_client = self.setup.space_of(call.link / self.setup.nodes);
        let keyspace = call.keyspace.as_deref().unwrap_or(of_client);
        let server = &mut self.servers[node];
        server.store.set_subscribers(subscribers);
        let time = server.time(began);
        if let Some(term) = keyspace.term() {
            let last = server.epoch.replace(term.epoch);
            self.counters.other_epochs += u64::from(last.is_some_and(|last| last != term.epoch));
        }
        let fails = server.fails.filter(|(_, until)| *until > self.now);
        let requests = &call.requests;
        let (answer, did) = match fails {
            Some((failing, _)) if self.phase.is_faulty() => {
                let random = &mut self.random;
                let mut fails = |request: &Request| failing.concerns(request, random);
                if call.is_transaction && requests.iter().any(&mut fails) {
                    // A server that will not do one of them does none.
                    return;
                }
                let answer = call_but(&mut server.store, keyspace, requests, fails, time);
                let failed = answer.replies.iter().filter(|reply| reply.is_err()).count();
                self.counters.failures += failed as u64;
                (answer, None)
            }
            _ if call.is_transaction => {
                self.counters.transactions += 1;
                let done = server.store.transact(keyspace, requests, time);
                let answer = done.judge(keyspace, requests);
                let is_unclear = |reply: &&Result<Reply, _>| **reply == Ok(Reply::Unclear);
                let unclear = answer.replies.iter().filter(is_unclear).count();
                self.counters.unclear += unclear as u64;
                let did = did(&answer, &done.done);
                (answer, Some(did))
            }
            _ => (server.store.call(keyspace, requests, time), None),
        };
        let votes = is_vote(answer.standing.as_ref());
        if votes {
            self.votes(node);
        }
        let did = did.unwrap_or_else(|| answer.clone());
        self.take_messages(node);
        self.watch(node, number, &did, time, votes);
        self.calls.get_mut(number).answer = Some(answer);
    }

    /// Judges what a node did, request by request.
    fn watch(
        &mut self,
        node: usize,
        number: u32,
        answer: &Answer,
        time: NodeTime,
        mut votes: bool,
    ) {
        let call = self.calls.get_mut(number);
        let requests = std::mem::take(&mut call.requests);
        let owners = std::mem::take(&mut call.owners);
        let (link, is_transaction) = (call.link, call.is_transaction);
        let is_stray = is_transaction && call.is_late;
        let mut touched = [false; MOST_KEYS];
        for (place, (request, reply)) in requests.iter().zip(&answer.replies).enumerate() {
            let Ok(reply) = reply else {
                if let Request::Job { verb, .. } = request {
                    self.note_unstored(node, verb);
                }
                continue;
            };
            self.counters.unlike += u64::from(*reply == Reply::PolicyMismatch);
            match request {
                Request::Lock { verb, lock } => {
                    let Lock { mode, owner, .. } = &**lock;
                    let Some(number) = owners.get(place).copied().flatten() else {
                        // By what only keeps a place, or leaves it, others may get the key.
                        let names = || lock.keys.iter().map(CountedKey::key);
                        let is_its =
                            |key: &usize| names().any(|name| *name == self.setup.keys[*key]);
                        let keys: Vec<usize> = (0..self.setup.keys.len()).filter(is_its).collect();
                        keys.iter().for_each(|key| touched[*key] = true);
                        self.watch_gift(node, &keys, time);
                        continue;
                    };
                    let keys = self.setup.keys_of(self.owners.get(number).key);
                    keys.iter().for_each(|key| touched[*key] = true);
                    let asked = Asked {
                        verb: *verb,
                        mode: *mode,
                        keys: &keys,
                        owner: number,
                        name: *owner,
                        reply,
                        is_transaction,
                        is_stray,
                    };
                    self.watch_lock(node, link, asked, time, votes);
                }
                Request::Job { verb, .. } => {
                    self.note_kept(verb, reply);
                    let asked = as_lock(verb, reply);
                    let number = owners.get(place).copied().flatten();
                    let (Some((verb, name, reply)), Some(owner)) = (asked, number) else {
                        continue;
                    };
                    self.count_claim(&reply);
                    if votes && matches!(reply, Reply::Taken { .. }) {
                        self.owners.get_mut(owner).granted[node] = Some(time.as_millis());
                    }
                    let key = self.owners.get(owner).key;
                    touched[key] = true;
                    let asked = Asked {
                        verb,
                        mode: LockMode::Exclusive,
                        keys: &[key],
                        owner,
                        name,
                        reply: &reply,
                        is_transaction: false,
                        is_stray: false,
                    };
                    self.watch_lock(node, link, asked, time, votes);
                }
                Request::Node(verb) => {
                    if self.note_opened(node, *verb, reply) {
                        let degraded = self.links[link].degrades.take();
                        self.counters.degraded += u64::from(degraded.is_some());
                        let duplicates = degraded.map_or(0, |degraded| degraded.duplicates);
                        self.observe(&Event::Opened { node, duplicates });
                        // What follows in the same call is done by a node that votes.
                        votes = true;
                        self.votes(node);
                    }
                }
            }
        }
        let call = self.calls.get_mut(number);
        call.requests = requests;
        call.owners = owners;
        let server = &self.servers[node];
        for key in (0..self.setup.keys.len()).filter(|key| touched[*key]) {
            let name = &self.setup.keys[key];
            let same = server
                .shadow
                .compare(key, name, &server.store, time.as_millis());
            if let Err(what) = same {
                let at = Moment::from_micros(self.now);
                self.checker.report(at, wrong(node, key, what));
            }
        }
    }

    fn watch_lock(
        &mut self,
        node: usize,
        link: usize,
        asked: Asked<'_>,
        time: NodeTime,
        votes: bool,
    ) {
        let Asked { verb, keys, .. } = asked;
        let key = self.owners.get(asked.owner).key;
        let (client, address) = self.ends(link);
        let at = Moment::from_micros(self.now);
        let millis = time.as_millis();
        self.trace.line(self.now, || {
            let Asked { owner, reply, .. } = asked;
            let votes = if votes { "" } else { " (no vote)" };
            format!(
                "node {node}: {verb:?} of key {key} for owner {owner} of client {client}: {reply:?}{votes}"
            )
        });
        let server = &mut self.servers[node];
        let life = server.life;
        let gone = self.owners.get(asked.owner).gone(node);
        let binds =
            |gone: Gone| gone.address == address || gone.is_tombstoned && !asked.is_transaction;
        let must_refuse =
            gone.is_some_and(|gone| binds(gone) && server.must_refuse(gone, self.now));
        let followed = server.shadow.follow(asked, millis);
        let clock = server.clock;
        let owner = self.owners.get_mut(asked.owner);
        match followed {
            Err(what) => self.checker.report(at, wrong(node, key, what)),
            Ok(Some(until)) => {
                let creates = matches!(verb, Verb::Acquire { .. } | Verb::Heal { .. });
                if creates {
                    owner.take(node, address);
                }
                if creates && must_refuse && !asked.is_stray {
                    self.checker
                        .report(at, Violation::Resurrected { node, key });
                }
                if votes && !matches!(verb, Verb::Heal { .. }) {
                    owner.promised[node] = clock.when((until + 1) * 1_000);
                }
                if !votes && matches!(verb, Verb::Acquire { .. }) {
                    self.counters.uncounted += 1;
                }
            }
            Ok(None) => {}
        }
        match (verb, asked.reply) {
            (Verb::Release { .. }, Reply::Unclear) => {}
            (Verb::Release { ttl } | Verb::Tombstone { ttl }, _) => {
                let until = millis + micros(ttl) / 1_000;
                let is_tombstoned = matches!(verb, Verb::Tombstone { .. });
                let gone = Gone {
                    life,
                    at: self.now,
                    until,
                    address,
                    is_tombstoned,
                };
                self.owners.get_mut(asked.owner).be_gone(node, gone);
                if asked.reply.is_done() {
                    self.must_have_heard_of_the_end(node, asked.owner);
                }
                self.counters.tombstones_left += u64::from(is_tombstoned);
            }
            (Verb::Acquire { line: Some(_), .. }, Reply::InLine { .. }) => {
                let owner = self.owners.get_mut(asked.owner);
                owner.line_over[node] = Some(address);
            }
            (_, Reply::Tombstoned) => self.counters.tombstones += 1,
            (Verb::Heal { .. }, Reply::Done) => self.counters.heals += 1,
            _ => {}
        }
        for key in keys {
            self.look_for_leftovers(node, *key, millis);
        }
        // Only a release, or a later caller that asks for a place, has a node give a key; a lock of several keys looks
        // at no line.
        let may_give = matches!(asked.reply, Reply::Passed { .. })
            || matches!(verb, Verb::Acquire { line: Some(_), .. });
        if may_give && keys.len() == 1 {
            self.watch_gift(node, keys, time);
        }
    }

    /// Returns whether a node was told to vote, and does.
    fn note_opened(&mut self, node: usize, verb: NodeVerb, reply: &Reply) -> bool {
        let (NodeVerb::Open { horizon, floor, .. }, Reply::Done) = (verb, reply) else {
            return false;
        };
        match horizon {
            None => self.counters.blessings += 1,
            Some(_) => self.counters.seedings += 1,
        }
        self.trace.line(self.now, || {
            format!("node {node} votes from now on, from {floor}")
        });
        true
    }

    fn votes(&mut self, node: usize) {
        if self.servers[node].must_be_told {
            self.observe(&Event::Voted { node });
        }
    }
}

/// Returns what a node did for a transaction, also where it does not say so.
fn did(answer: &Answer, done: &[Done]) -> Answer {
    let replies = answer.replies.iter().zip(done);
    let replies = replies.map(|(reply, done)| match (reply, done) {
        (Ok(Reply::Unclear), Done::Took { is_owner: true, .. }) => Ok(Reply::Taken { counter: 0 }),
        (Ok(Reply::Unclear), Done::Compared { is_owner: true, .. }) => Ok(Reply::Done),
        (reply, _) => reply.clone(),
    });
    Answer {
        replies: replies.collect(),
        standing: answer.standing.clone(),
    }
}

/// Returns why a node did nothing of a call.
fn refused() -> Arc<str> {
    "the node refused the call".into()
}
