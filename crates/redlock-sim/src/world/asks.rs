//! The asking of callers: a time to live, a mode, a wait.

use std::time::Duration;

use redlock_proto::{Acquire, Fairness, LockMode, Timing};

use super::{World, callers::Ask};
use crate::{
    Event, Plan,
    setup::{MS, RATE_ERROR},
};

impl World {
    /// Draws what a caller asks for, which is mostly what the one before it in the same process has asked for.
    fn draw_ask(&mut self, client: usize, key: usize) -> Ask {
        let is_loner = self.is_loner(client, key);
        let random = &mut self.random;
        let last = self.processes[client].callers.last[key];
        if let Some(last) =
            last.filter(|last| !(last.mode == LockMode::Shared && is_loner) && random.chance(700))
        {
            return last;
        }
        let max_ttl = self.setup.max_ttl_of(client);
        let ttl = random.pick(&self.setup.ttls).min(max_ttl);
        // Nodes keep the key for both, which must not be longer than what they are told never to exceed.
        let rest = if random.chance(150) {
            (max_ttl - ttl).min(ttl / 2)
        } else {
            0
        };
        let shares = self.setup.plan == Plan::Shared && !is_loner;
        let mode = if shares && random.chance(600) {
            LockMode::Shared
        } else {
            LockMode::Exclusive
        };
        let ask = Ask {
            mode,
            ttl,
            rest,
            // A lease that is not renewed is lost for that.
            renew: random.chance(750)
                || self.setup.plan == Plan::OneGone
                || self.setup.slices.is_some(),
            // A client that stands still for as long as it may hold a lease has none.
            max_hold: (random.chance(100) && self.setup.slices.is_none())
                .then(|| random.between(MS, 2 * ttl)),
            // Mostly all callers of a key use the same.
            fairness: if key.is_multiple_of(2) == random.chance(900) {
                Fairness::Cohort
            } else {
                Fairness::Strict
            },
        };
        self.processes[client].callers.last[key] = Some(ask);
        ask
    }

    /// Returns whether a caller is one that shares nothing: of single keys, because sets wait for each other too.
    fn is_loner(&self, client: usize, key: usize) -> bool {
        self.loner == Some(client) && key < self.setup.keys.len()
    }

    pub(super) fn ask_for(&mut self, client: usize, key: usize) {
        let Ask {
            mode,
            ttl,
            rest,
            renew,
            max_hold,
            fairness,
        } = self.draw_ask(client, key);
        // What a client gets that stands still must outlast that.
        let parts = if self.setup.slices.is_some() { 4 } else { 20 };
        let min_validity = Duration::from_micros(ttl / parts);
        let timing = Timing::new(Duration::from_micros(ttl), RATE_ERROR, min_validity)
            .expect("a twentieth of the ttl is left after the drift")
            .with_lock_delay(Duration::from_micros(rest));
        let is_loner = self.is_loner(client, key);
        let random = &mut self.random;
        let wait = random.pick(&[0, ttl / 2, ttl, 3 * ttl]);
        let wait = if is_loner { 3 * ttl } else { wait };
        let tokens = if random.chance(500) { 8 } else { 1 };
        let abandon = random
            .chance(100)
            .then(|| random.between(0, wait + 20 * MS));

        let waiter = self.next_waiter;
        self.next_waiter += 1;
        let quorum_wait = match (self.setup.jobs.is_some(), waiter % 3) {
            // Claims bear with an outage for the whole of their wait.
            (true, _) | (_, 0) => None,
            (_, 1) => Some(0),
            _ => Some(wait / 4),
        };
        let process = &self.processes[client];
        let came = process.now(self.now).clock;
        let wait_until = came + Duration::from_micros(wait);
        let until = process.when(wait_until);
        let acquire = Acquire {
            mode,
            keys: self.setup.names_of(key),
            timing,
            renew,
            max_hold: max_hold.map(Duration::from_micros),
            // Leases on several keys and shared leases are never handed over.
            tokens: if key < self.setup.keys.len() && mode == LockMode::Exclusive {
                tokens
            } else {
                1
            },
            fairness,
            came,
            wait_until,
            quorum_wait: quorum_wait.map(Duration::from_micros),
            label: None,
        };
        self.observe(&Event::Waits {
            waiter,
            client,
            until: crate::Moment::from_micros(until),
            due: self.caller_due(until, ttl),
        });
        self.trace.line(self.now, || {
            format!("client {client} asks for key {key}, {mode:?}, ttl {ttl}, waits {wait} µs")
        });
        self.enter(client, key, (waiter, acquire), (wait, rest, abandon));
    }
}
