//! The users of clients: they wait for keys, hold leases for a while, and are done with them in all the
//! ways there are.

use std::time::Duration;

use redlock_proto::{LeaseTerms, LockMode, Word};

use super::{World, agenda::Due, callers::Caller, process::State, ticks::LOST, waiter::waiter_of};
use crate::{
    Event, Moment, Plan,
    setup::{MS, Micros, Nap},
};

impl World {
    /// A user does what is due about a key.
    pub(super) fn on_act(&mut self, client: usize, key: usize, stamp: u32) {
        let process = &self.processes[client];
        let user = process.users[key];
        if user.stamp != stamp || !process.is_alive {
            return;
        }
        match user.state {
            State::Idle => return,
            State::Waiting { id, waiter } => {
                self.counters.abandoned += 1;
                self.trace.line(self.now, || {
                    format!("client {client} does not want key {key} any more")
                });
                self.observe(&Event::Answered { waiter });
                self.did_not_start(client, key);
                let now = self.processes[client].now(self.now);
                self.processes[client].client.abandon(id, now);
                self.processes[client].numbers.remove(id);
                self.give_up(client, key);
                self.processes[client].users[key].state = State::Idle;
                self.leave_turn(client, key);
            }
            State::Holding(holding) => {
                let now = self.processes[client].now(self.now);
                if holding.looks && !holding.is_lost && now.clock >= holding.deadline {
                    self.processes[client].client.expire(holding.id, now);
                }
                if self.now >= holding.done_at {
                    self.finish(client, key);
                } else {
                    if holding.changes_at.is_some_and(|at| self.now >= at) && !holding.is_lost {
                        self.change_mode(client, key);
                    }
                    if holding.extends_every > 0 && !holding.is_lost {
                        let ask = self.ask(client, 2);
                        let process = &mut self.processes[client];
                        process.client.extend(holding.id, ask, now);
                    }
                    self.act_next(client, key);
                }
            }
        }
        self.settle(client);
    }

    /// A caller of a process comes for a key.
    pub(super) fn on_come(&mut self, client: usize, key: usize, life: u32) {
        let process = &self.processes[client];
        if process.life != life || !process.is_alive || process.is_closed {
            return;
        }
        if self.singles_rest() && key < self.setup.keys.len() {
            return;
        }
        if self.setup.jobs.is_some() && self.random.chance(150) {
            self.read_status(client, key);
        }
        self.ask_for(client, key);
        self.settle(client);
    }

    /// Returns whether callers of single keys have stopped.
    pub(super) fn singles_rest(&self) -> bool {
        self.singles_rest_at.is_some_and(|at| self.now >= at)
    }

    /// A caller rests, and wants the key again after a while.
    pub(super) fn rest(&mut self, client: usize, key: usize) {
        let think = if self.random.chance(200) && !self.setup.rolls {
            5 * self.setup.think
        } else {
            self.setup.think
        };
        let mut at = self.now + self.random.between(MS / 2, think);
        if let Some(Nap { from, until }) = self.setup.odd.nap
            && (from..until).contains(&at)
        {
            at = at.max(until - self.random.below(self.setup.max_ttl));
        }
        let life = self.processes[client].life;
        self.agenda.add(at, Due::Come { client, key, life });
    }

    fn act_at(&mut self, client: usize, key: usize, at: Micros) {
        let user = &mut self.processes[client].users[key];
        user.stamp += 1;
        let stamp = user.stamp;
        self.agenda.add(at, Due::Act { client, key, stamp });
    }

    /// A caller that has its turn asks the nodes.
    pub(super) fn ask_nodes(&mut self, client: usize, caller: Caller) {
        let Caller {
            waiter,
            key,
            acquire,
            rest,
            abandons_at,
            ..
        } = caller;
        let process = &mut self.processes[client];
        let id = process.numbers.add(());
        let now = process.now(self.now);
        let user = &mut process.users[key];
        user.state = State::Waiting { id, waiter };
        user.since = self.now;
        user.stamp += 1;
        // The clocks of nodes may be fast.
        user.rest = rest - rest / 50;
        user.is_limited = acquire.max_hold.is_some();
        user.terms = Some(LeaseTerms::of(&acquire));
        user.mode = acquire.mode;
        if self.setup.jobs.is_some() {
            self.claim(client, key, id, acquire);
        } else {
            process.client.acquire(id, acquire, now);
        }
        if let Some(at) = abandons_at {
            self.act_at(client, key, at.max(self.now));
        }
    }

    /// A user has a lease, and decides what to do with it.
    pub(super) fn use_lease(&mut self, client: usize, key: usize) {
        let ttl = self.setup.max_ttl;
        // Where every set must be had, none is kept for long.
        let is_brief = self.singles_rest();
        let random = &mut self.random;
        let length = match random.below(10) {
            _ if is_brief => random.between(0, 8 * MS),
            // It must outlive the node, or be there when another server is named.
            4..=9 if matches!(self.setup.plan, Plan::OneGone | Plan::Named) => {
                random.between(0, 3 * ttl / 2)
            }
            0..=7 if self.setup.odd.nap.is_some() => random.between(0, ttl / 2),
            0..=7 => random.between(0, 8 * MS),
            8 => random.between(0, ttl / 2),
            _ => random.between(0, 2 * ttl),
        };
        let extends_every = if random.chance(500) {
            random.between(2 * MS, ttl / 4)
        } else {
            0
        };
        let looks = random.chance(500);
        let changes = self.setup.plan == Plan::Shared && random.chance(300);
        let changes_at = changes.then(|| self.now + random.between(0, length));
        let done_at = self.now + length;
        if let State::Holding(holding) = &mut self.processes[client].users[key].state {
            holding.done_at = done_at;
            holding.extends_every = extends_every;
            holding.looks = looks;
            holding.changes_at = changes_at;
        }
        self.act_next(client, key);
    }

    /// Decides what a user of a lease does next, and when.
    fn act_next(&mut self, client: usize, key: usize) {
        let process = &self.processes[client];
        let State::Holding(holding) = process.users[key].state else {
            return;
        };
        let mut at = holding.done_at;
        if !holding.is_lost {
            if holding.extends_every > 0 {
                at = at.min(self.now + holding.extends_every);
            }
            if let Some(changes_at) = holding.changes_at {
                at = at.min(changes_at);
            }
            if holding.looks {
                at = at.min(process.when(holding.deadline));
            }
        }
        self.act_at(client, key, at.max(self.now + 1));
    }

    /// A user lets others share what it has alone, or tries to have alone what it shares; or it gives that up.
    fn change_mode(&mut self, client: usize, key: usize) {
        let is_patient = self.random.chance(700);
        let (now, soon) = (self.now, self.random.between(1, 8 * MS));
        let user = &mut self.processes[client].users[key];
        let (mode, tries) = (user.mode, user.upgrade.is_some());
        if let State::Holding(holding) = &mut user.state {
            // It may lose its patience, or its mind may change again.
            let again = mode == LockMode::Exclusive || !is_patient;
            holding.changes_at = again.then_some(now + soon);
        }
        match mode {
            _ if tries => self.drop_upgrade(client, key),
            LockMode::Shared => self.upgrade(client, key),
            _ => self.downgrade(client, key),
        }
    }

    /// A user lets others share what it has alone.
    fn downgrade(&mut self, client: usize, key: usize) {
        let ask = self.ask(client, 2);
        let process = &mut self.processes[client];
        let now = process.now(self.now);
        let user = &mut process.users[key];
        let State::Holding(holding) = &mut user.state else {
            return;
        };
        let (id, lease) = (holding.id, holding.lease);
        user.mode = LockMode::Shared;
        // A downgraded lease is not handed over: the next caller may want it exclusively.
        user.terms = None;
        process.client.downgrade(id, ask, now);
        self.counters.downgraded += 1;
        self.observe(&Event::Downgraded { lease });
    }

    /// A lease has a later deadline.
    pub(super) fn on_extended(&mut self, client: usize, key: usize) {
        if let State::Holding(holding) = self.processes[client].users[key].state
            && holding.looks
            && holding.extends_every == 0
        {
            self.act_next(client, key);
        }
    }

    /// Tells a user that its lease is lost; the user releases it sooner or later.
    pub(super) fn on_loss(&mut self, client: usize, key: usize) {
        let after = if self.random.chance(700) {
            self.random.below(5 * MS)
        } else {
            self.random.below(self.setup.max_ttl)
        };
        let at = self.now + after;
        if let State::Holding(holding) = &mut self.processes[client].users[key].state {
            holding.done_at = at;
        }
        self.act_at(client, key, at);
    }

    /// A user is done with its lease, which goes to the next one in the same process, or back.
    fn finish(&mut self, client: usize, key: usize) {
        if !self.pass_on(client, key) {
            self.done_with(client, key);
        }
    }

    /// Ends a user's lease without handing it over.
    pub(super) fn done_with(&mut self, client: usize, key: usize) {
        self.let_go(client, key);
        // Requests travel in order, so the next caller is not refused because of this one.
        self.leave_turn(client, key);
    }

    /// A lease is released, or left to its time to live.
    pub(super) fn let_go(&mut self, client: usize, key: usize) {
        let State::Holding(holding) = self.processes[client].users[key].state else {
            return;
        };
        self.drop_upgrade(client, key);
        let lease = holding.lease;
        let leaves = self.phase.is_faulty() && self.random.chance(40);
        self.trace.line(self.now, || {
            let verb = if leaves { "leaves" } else { "releases" };
            format!("client {client} {verb} lease {lease} on key {key}")
        });
        let now = self.processes[client].now(self.now);
        if leaves {
            self.counters.left += 1;
            self.observe(&Event::Ended { lease });
            self.processes[client].client.leave(holding.id);
            if let Some(owner) = self.processes[client].users[key].owner {
                self.owners.get_mut(owner).stays = true;
            }
        } else {
            self.counters.released += 1;
            self.observe(&Event::Released { lease });
            let ask = if self.random.chance(500) {
                Some(self.ask(client, 1))
            } else {
                None
            };
            let ends = self.setup.jobs.is_some() && self.random.chance(700);
            let in_order = self.setup.jobs.is_some_and(|jobs| jobs.in_order);
            let is_lost = ends && in_order && self.random.chance(200);
            let process = &mut self.processes[client];
            if ends {
                let took = Duration::from_millis(1);
                let outcome = Word::new(if is_lost { LOST } else { "ok" });
                let outcome = outcome.expect("it is a word");
                process.client.finish(holding.id, outcome, took, None, now);
            }
            if process.holds_back {
                process.held_back.push((holding.id, ask));
            } else {
                process.client.release(holding.id, ask, now);
            }
        }
        let process = &mut self.processes[client];
        if !process.held_back.iter().any(|(id, _)| *id == holding.id) {
            process.numbers.remove(holding.id);
        }
        self.give_up(client, key);
        let user = &mut self.processes[client].users[key];
        user.state = State::Idle;
        user.stamp += 1;
    }

    /// Begins a wait for an answer that takes `rounds` rounds, and returns the number of the question.
    pub(super) fn ask(&mut self, client: usize, rounds: u64) -> u64 {
        let process = &mut self.processes[client];
        let ask = process.next_ask;
        process.next_ask += 1;
        let due = Moment::from_micros(self.answer_due(rounds));
        self.observe(&Event::Waits {
            waiter: waiter_of(client, ask),
            client,
            until: due,
            due,
        });
        ask
    }
}
