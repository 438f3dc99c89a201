//! The faults of a world, when they happen.

use std::time::Duration;

use redlock_proto::Client;

use super::{
    World,
    agenda::Due,
    begin::{EPOCH, config},
    callers::Callers,
    process::State,
    waiter::waiter_of,
};
use crate::{
    Event,
    clock::Clock,
    fault::{Data, Fate, Fault},
    setup::{MS, Micros},
};

impl World {
    pub(super) fn on_fault(&mut self, index: usize) {
        let (_, fault) = self.faults[index];
        self.trace.line(self.now, || format!("fault: {fault:?}"));
        match fault {
            Fault::Crash { node, down, data } => self.crash(node, down, data),
            Fault::Replace { node, data } => {
                if self.servers[node].is_up {
                    self.counters.promotions += 1;
                    self.restart(node, data);
                }
            }
            Fault::Snapshot { node } => self.servers[node].copy(),
            Fault::Rewind { node, shows } => {
                if self.servers[node].is_up && self.servers[node].rewind(shows) {
                    self.counters.rewinds += 1;
                    self.observe(&Event::Forgot { node });
                }
            }
            Fault::Flush { node } => {
                if self.servers[node].is_up {
                    self.counters.flushes += 1;
                    // A node without a mark cannot have voted since its last loss, so it has no vote to forget.
                    let forgets = self.servers[node].store.has_marks();
                    self.servers[node].flush();
                    if forgets {
                        self.observe(&Event::Forgot { node });
                    }
                }
            }
            Fault::Freeze { node, length } => {
                self.counters.freezes += 1;
                let server = &mut self.servers[node];
                server.frozen_until = server.frozen_until.max(self.now + length);
            }
            Fault::Seize { node, length } => self.servers[node].seizes = Some(length),
            Fault::Fail {
                node,
                failing,
                length,
            } => self.servers[node].fails = Some((failing, self.now + length)),
            Fault::Cut {
                client,
                node,
                fate,
                unnoticed,
            } => {
                let link = self.link(client, node);
                self.cut(link, fate, unnoticed);
            }
            Fault::Hole {
                client,
                node,
                out,
                back,
                length,
            } => {
                let link = self.link(client, node);
                let link = &mut self.links[link];
                let until = self.now + length;
                if out {
                    link.hole_out = link.hole_out.max(until);
                }
                if back {
                    link.hole_back = link.hole_back.max(until);
                }
            }
            Fault::Route { client, node, to } => {
                let link = self.link(client, node);
                self.reroute(link, to);
            }
            Fault::Pause { client, length } => self.pause(client, length),
            Fault::Stumble { client, length } => self.processes[client].stumbles = Some(length),
            Fault::Kill { client, successor } => self.kill(client, successor),
            Fault::Stray { node, back, length } => self.stray(node, back, length),
            Fault::Waver { node, back, length } => {
                self.servers[node].wavers = Some((back, length));
            }
            Fault::Naming { node, what } => self.on_naming_fault(node, what),
            Fault::StepWall { client, by } => {
                self.counters.wall_steps += 1;
                self.processes[client].step_wall(by);
            }
            Fault::Step { node, by } => {
                self.counters.steps += 1;
                self.servers[node].set_clock(by, self.now);
                self.stepped[node] += by;
                self.behind += by.min(0).unsigned_abs();
            }
        }
    }

    /// A node's clock is far behind for a while, unless it is already.
    fn stray(&mut self, node: usize, back: Micros, length: Micros) {
        if self.servers[node].astray == 0 {
            self.counters.strays += 1;
            self.servers[node].astray = back;
            self.servers[node].set_clock(-back.cast_signed(), self.now);
            self.agenda.add(self.now + length, Due::Right { node });
        }
    }

    /// A node's clock is set right that was far behind.
    pub(super) fn on_right(&mut self, node: usize) {
        let back = std::mem::take(&mut self.servers[node].astray);
        self.servers[node].set_clock(back.cast_signed(), self.now);
    }

    /// A node is told to vote: perhaps it stands still just then, and its clock is wrong when it goes on.
    pub(super) fn note_vote_told(&mut self, node: usize) {
        if self.phase.is_faulty()
            && let Some((back, length)) = self.servers[node].wavers.take()
        {
            let server = &mut self.servers[node];
            server.frozen_until = server.frozen_until.max(self.now + length);
            self.stray(node, back, length + 5 * MS);
        }
    }

    /// An address leads to another server from now on, over the connection that stands.
    pub(super) fn reroute(&mut self, link: usize, to: usize) {
        let this = &mut self.links[link];
        if this.server == to {
            return;
        }
        this.server = to;
        this.rerouted = Some(self.now);
        self.counters.reroutes += 1;
        if !self.servers[to].is_up {
            self.cut(link, Fate::Dropped, MS);
        }
    }

    /// A connection breaks, and its client notices after a while.
    pub(super) fn cut(&mut self, link: usize, fate: Fate, unnoticed: Micros) {
        self.sever(link, fate);
        let conn = self.links[link].conn;
        self.agenda
            .add(self.now + unnoticed, Due::Lost { link, conn });
    }

    fn crash(&mut self, node: usize, down: Micros, data: Data) {
        let server = &mut self.servers[node];
        if !server.is_up {
            return;
        }
        match data {
            Data::Kept => self.counters.crashes_kept += 1,
            Data::Lost => self.counters.crashes_lost += 1,
            Data::Stale => self.counters.crashes_stale += 1,
        }
        server.is_up = false;
        server.crashes += 1;
        self.restart(node, data);
        for link in 0..self.links.len() {
            if self.links[link].server != node {
                continue;
            }
            let unnoticed = self.random.between(MS / 2, 2 * MS);
            self.cut(link, Fate::Dropped, unnoticed);
        }
        self.agenda.add(self.now + down, Due::Restart { node });
    }

    /// Begins another run of a node with these data; the judge is told what it forgot.
    pub(super) fn restart(&mut self, node: usize, data: Data) {
        self.servers[node].restart(data);
        if data != Data::Kept {
            self.observe(&Event::Forgot { node });
        } else if !self.setup.trust {
            self.servers[node].must_be_told = true;
            self.observe(&Event::Restarted { node });
        }
    }

    pub(super) fn on_restart(&mut self, node: usize) {
        self.trace
            .line(self.now, || format!("node {node} is up again"));
        self.servers[node].is_up = true;
    }

    pub(super) fn pause(&mut self, client: usize, length: Micros) {
        let process = &mut self.processes[client];
        if !process.is_alive {
            return;
        }
        self.counters.pauses += 1;
        process.pause(self.now, self.now + length);
        let life = process.life;
        let at = process.paused_until;
        self.agenda.add(at, Due::Wake { client, life });
    }

    /// A client ends without a word: its connections break, and what was on its way may arrive.
    fn kill(&mut self, client: usize, successor: Option<Micros>) {
        let others = self.processes.iter().filter(|process| process.is_alive);
        if !self.processes[client].is_alive || (successor.is_none() && others.count() < 2) {
            return;
        }
        self.counters.kills += 1;
        if let Some(length) = self.processes[client].wake(self.now) {
            let length = Duration::from_micros(length);
            self.observe(&Event::StoodStill { client, length });
        }
        for key in 0..self.setup.locks() {
            let user = self.processes[client].users[key];
            if let State::Holding(holding) = user.state {
                let lease = holding.lease;
                self.observe(&Event::Ended { lease });
            }
            if let State::Waiting { waiter, .. } = user.state {
                self.observe(&Event::Answered { waiter });
                self.did_not_start(client, key);
            }
            self.give_up(client, key);
            self.processes[client].users[key].stamp += 1;
        }
        for waiter in self.processes[client].callers.waiters() {
            self.observe(&Event::Answered { waiter });
        }
        self.processes[client].callers = Callers::new(self.setup.locks());
        for ask in 0..self.processes[client].next_ask {
            let waiter = waiter_of(client, ask);
            self.observe(&Event::Answered { waiter });
        }
        for node in 0..self.setup.nodes {
            let link = self.link(client, node);
            let fate = if self.random.chance(300) {
                Fate::Late(self.random.between(MS, self.setup.max_ttl))
            } else {
                Fate::Dropped
            };
            self.sever(link, fate);
            self.forget_link(link);
        }
        let process = &mut self.processes[client];
        process.given_up.clear();
        process.is_alive = false;
        process.life += 1;
        if let Some(after) = successor {
            let life = process.life;
            let at = self.now + after;
            self.agenda.add(at, Due::Begin { client, life });
        }
    }

    /// Forgets the calls of a link whose client is gone, and makes the link new.
    fn forget_link(&mut self, link: usize) {
        self.forget_calls(link);
        let entropy = self.random.fork();
        let machine = redlock_proto::Link::new(self.setup.link, entropy);
        self.links[link].succeed(machine);
    }

    pub(super) fn on_successor(&mut self, client: usize, life: u32) {
        if self.processes[client].life != life {
            return;
        }
        let machine = Client::new(config(&self.setup, client), self.random.fork());
        // Where order is to rest on floors, no clock may stand in for them by being ahead.
        let wall = self
            .setup
            .forgets
            .then(|| Clock::new(0, EPOCH.cast_signed()));
        self.processes[client].succeed(machine, wall);
        if self.setup.plan.sets_all_clocks() && self.phase.repaired().is_some() {
            // As those of the others were set, which all are what nodes' were.
            let ahead = self.stepped[0];
            self.processes[client].set_wall(ahead);
        }
        self.begin_client(client);
        if self.phase.is_closing() {
            self.close(client);
        }
    }

    /// Lets an operator vouch for the nodes.
    pub(super) fn on_bless(&mut self) {
        let client = 0;
        if !self.processes[client].is_alive || self.processes[client].is_paused(self.now) {
            return;
        }
        let ask = self.ask(client, 2);
        let now = self.processes[client].now(self.now);
        self.processes[client].client.bless(ask, now);
        self.settle(client);
    }
}
