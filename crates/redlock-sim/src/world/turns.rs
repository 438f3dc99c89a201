//! The turns of callers of one process.

use redlock_proto::{
    Acquire, Departure, Fairness, LeaseTerms, NoPlace, ParkedLease, Ticket, TokenBlock,
};

use super::{
    World,
    agenda::Due,
    callers::{Caller, Stage},
    process::{Process, State},
};
use crate::{
    Event, Moment, Plan, Violation,
    setup::{MS, Micros},
};

impl World {
    /// A caller takes its place behind those of the same process, and goes away when its wait ends, or before.
    pub(super) fn enter(
        &mut self,
        client: usize,
        key: usize,
        (waiter, acquire): (u64, Acquire),
        (wait, rest, abandon): (Micros, Micros, Option<Micros>),
    ) {
        let keys = self.setup.keys_of(key);
        // Where every set must be had, none is turned away again and again.
        let (per_key, in_all) = if self.singles_rest() {
            (usize::MAX, usize::MAX)
        } else {
            (MOST_PER_KEY, MOST_IN_ALL)
        };
        let process = &mut self.processes[client];
        let ends_at = process.when(acquire.wait_until);
        let is_full = process.callers.that_wait() >= in_all;
        let queue = &mut process.callers.queue;
        let entered = if is_full && keys.iter().any(|key| queue.callers_of(key) > 0) {
            Err(NoPlace::Full)
        } else {
            queue.enter(&keys, Vec::new(), per_key)
        };
        let Ok(ticket) = entered else {
            self.counters.overloaded += 1;
            self.observe(&Event::Answered { waiter });
            return self.rest(client, key);
        };
        let has_turn = queue.has_turn(&keys, ticket);
        let abandons_at = abandon.map(|after| self.now + after);
        process.callers.waiting.push(Caller {
            waiter,
            key,
            ticket,
            acquire,
            rest,
            leaves_at: abandons_at.unwrap_or(ends_at).min(ends_at),
            abandons_at,
            stage: if has_turn {
                Stage::Called
            } else {
                Stage::Waits
            },
        });
        if has_turn {
            return self.take_turn(client, waiter);
        }
        if wait == 0 {
            // It makes one attempt, and there is no turn for it.
            return self.go_away(client, waiter);
        }
        let at = abandons_at.unwrap_or(ends_at).min(ends_at);
        self.agenda.add(at, Due::Caller { client, waiter });
    }

    /// A caller notices that its turn has come, or that its wait is over.
    pub(super) fn on_caller(&mut self, client: usize, waiter: u64) {
        let now = self.now;
        let process = &mut self.processes[client];
        let Some(caller) = process.callers.find(waiter) else {
            return;
        };
        match caller.stage {
            Stage::Called => self.take_turn(client, waiter),
            Stage::Waits if now >= caller.leaves_at => self.go_away(client, waiter),
            Stage::Waits => {}
        }
        self.settle(client);
    }

    /// A caller has its turn: it takes over what the holder before has left, or contends.
    fn take_turn(&mut self, client: usize, waiter: u64) {
        let process = &mut self.processes[client];
        let clock = process.now(self.now).clock;
        let Some(caller) = process.callers.find(waiter) else {
            return;
        };
        let key = caller.key;
        let terms = LeaseTerms::of(&caller.acquire);
        let keys = self.setup.keys_of(key);
        if let [only] = &keys[..]
            && let Some(parked) = process.callers.queue.inherit(only)
        {
            // A claim takes nothing over.
            let tokens = parked.take_over(&terms, clock);
            if let Some(tokens) = tokens.filter(|_| self.setup.jobs.is_none()) {
                return self.take_over(client, waiter, tokens);
            }
            // The next caller enters the line before the key is free.
            self.processes[client].holds_back = terms.fairness == Fairness::Strict;
            self.let_go(client, key);
            self.processes[client].holds_back = false;
        }
        self.contend(client, waiter);
    }

    /// A caller contends for its key.
    fn contend(&mut self, client: usize, waiter: u64) {
        let Some(caller) = self.processes[client].callers.take(waiter) else {
            return;
        };
        self.processes[client].users[caller.key].ticket = Some(caller.ticket);
        self.ask_nodes(client, caller);
        let process = &mut self.processes[client];
        let now = process.now(self.now);
        for (id, ask) in std::mem::take(&mut process.held_back) {
            process.client.release(id, ask, now);
            process.numbers.remove(id);
        }
    }

    /// The next caller of the same process takes a lease over, under the next of its tokens.
    fn take_over(&mut self, client: usize, waiter: u64, tokens: TokenBlock) {
        let process = &mut self.processes[client];
        let now = process.now(self.now);
        let Some(caller) = process.callers.take(waiter) else {
            return;
        };
        let key = caller.key;
        let user = &mut process.users[key];
        user.ticket = Some(caller.ticket);
        let asks_for_another = user.terms != Some(LeaseTerms::of(&caller.acquire));
        let State::Holding(holding) = &mut user.state else {
            return;
        };
        let deadline = process.client.resume(holding.id, now);
        self.observe(&Event::Answered { waiter });
        if asks_for_another {
            self.out_of_turn(client, key, "one has a lease that it did not ask for");
        }
        let timing = caller.acquire.timing;
        if deadline.is_some_and(|deadline| !timing.may_hand_out(deadline, now.clock)) {
            self.out_of_turn(client, key, "one has a lease that is hardly valid");
        }
        let State::Holding(holding) = &mut self.processes[client].users[key].state else {
            return;
        };
        let Some(deadline) = deadline else {
            return self.done_with(client, key);
        };
        holding.is_parked = false;
        holding.tokens = tokens;
        holding.deadline = deadline;
        let (lease, token) = (holding.lease, tokens.first().get());
        self.counters.handed_over += 1;
        let until = self.true_time(client, deadline);
        self.trace.line(self.now, || {
            format!("client {client} hands lease {lease} over: token {token}, until {until}")
        });
        self.observe(&Event::HandedOver {
            lease,
            token,
            until,
        });
        self.use_lease(client, key);
    }

    /// Leaves a lease to the next caller of the same process, if one may have it; returns whether it does.
    pub(super) fn pass_on(&mut self, client: usize, key: usize) -> bool {
        let process = &mut self.processes[client];
        let now = process.now(self.now).clock;
        let user = &mut process.users[key];
        let (State::Holding(holding), Some(terms)) = (&mut user.state, user.terms) else {
            return false;
        };
        let fairness = terms.fairness;
        if holding.is_lost || !process.callers.queue.may_pass_on(&key, fairness, now) {
            return false;
        }
        let Some(parked) = ParkedLease::new(holding.tokens, terms, holding.deadline) else {
            return false;
        };
        holding.is_parked = true;
        // Nothing that was due for the holder concerns the next.
        user.stamp += 1;
        let (id, lease) = (holding.id, holding.lease);
        let held_for = now.saturating_since(holding.won_at);
        process.callers.queue.park(&key, parked);
        process.client.park(id);
        self.observe(&Event::Parked { lease });
        if held_for >= Fairness::LONGEST_COHORT && fairness == Fairness::Cohort {
            let what = "a lease passes on while other processes should have their turn";
            self.out_of_turn(client, key, what);
        }
        self.leave_turn(client, key);
        true
    }

    /// The caller that had the turn leaves it to the next, and comes back later.
    pub(super) fn leave_turn(&mut self, client: usize, key: usize) {
        if let Some(ticket) = self.processes[client].users[key].ticket.take() {
            self.leave(client, key, ticket);
            self.rest(client, key);
        }
    }

    /// A caller that has no turn yet goes away, and comes back later.
    pub(super) fn go_away(&mut self, client: usize, waiter: u64) {
        let Some(caller) = self.processes[client].callers.take(waiter) else {
            return;
        };
        self.counters.waited_in_vain += 1;
        self.observe(&Event::Answered { waiter });
        self.leave(client, caller.key, caller.ticket);
        self.rest(client, caller.key);
    }

    fn leave(&mut self, client: usize, key: usize, ticket: Ticket) {
        let keys = self.setup.keys_of(key);
        let process = &mut self.processes[client];
        let Departure { next, unclaimed } = process.callers.queue.leave(&keys, ticket);
        for ticket in next {
            self.call(client, ticket);
        }
        if unclaimed.is_some() {
            self.let_go(client, key);
        }
        self.look_at_turns(client);
        let process = &self.processes[client];
        let mut waiting = process.callers.waiting.iter();
        let is_alone = !waiting.any(|caller| caller.key == key);
        let state = process.users[key].state;
        if is_alone && matches!(state, State::Holding(holding) if holding.is_parked) {
            self.out_of_turn(client, key, "a lease was left to nobody");
        }
    }

    /// A caller is told that it has its turn.
    fn call(&mut self, client: usize, ticket: Ticket) {
        let mut waiting = self.processes[client].callers.waiting.iter_mut();
        let Some(caller) = waiting.find(|caller| caller.ticket == ticket) else {
            return;
        };
        caller.stage = Stage::Called;
        let waiter = caller.waiter;
        // It may be long until it is polled.
        // A lease is not renewed meanwhile, and its last renewal may rest on a bare majority.
        let longest = match self.setup.plan {
            Plan::OneGone => self.setup.max_ttl / 20,
            _ => self.setup.max_ttl,
        };
        let after = if self.random.chance(900) {
            self.random.below(2 * MS)
        } else {
            self.random.below(longest)
        };
        let at = self.now + after;
        self.agenda.add(at, Due::Caller { client, waiter });
    }

    /// Checks that a caller has its turn exactly if no earlier caller wants one of its keys.
    fn look_at_turns(&mut self, client: usize) {
        let Process { callers, users, .. } = &self.processes[client];
        let contending = (0..users.len()).filter(|lock| users[*lock].ticket.is_some());
        let mut wanted: Vec<usize> = contending
            .flat_map(|lock| self.setup.keys_of(lock))
            .collect();
        let mut found = None;
        // They are here in the order in which they came.
        for caller in &callers.waiting {
            let keys = self.setup.keys_of(caller.key);
            let is_first = !keys.iter().any(|key| wanted.contains(key));
            found = match (is_first, caller.stage) {
                (true, Stage::Waits) => Some((caller.key, "one waits for nobody")),
                (false, Stage::Called) => Some((caller.key, "one has overtaken another")),
                _ => found,
            };
            wanted.extend(keys);
        }
        if let Some((key, what)) = found {
            self.out_of_turn(client, key, what);
        }
    }

    pub(super) fn out_of_turn(&mut self, client: usize, key: usize, what: &'static str) {
        let at = Moment::from_micros(self.now);
        self.checker
            .report(at, Violation::OutOfTurn { client, key, what });
    }

    /// Returns when a caller that waits until a moment must have an answer at the latest.
    pub(super) fn caller_due(&self, until: Micros, ttl: Micros) -> Moment {
        // The last attempt begins when the wait ends, and its token may have to be written back, or its tick to be
        // remembered, for which nodes are asked while the lease lasts.
        let confirming = if self.setup.jobs.is_some() { ttl } else { 0 };
        Moment::from_micros(until + confirming + self.answer_due(2) - self.now)
    }
}

/// The most callers that may wait for a key of a process: fewer than come, so that some are turned away.
const MOST_PER_KEY: usize = 2;

/// With this many waiting callers, a process asks for no key for which callers wait, as an overloaded program does.
const MOST_IN_ALL: usize = 5;
