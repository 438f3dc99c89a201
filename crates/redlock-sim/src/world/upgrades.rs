//! Readers that try to become writers.

use redlock_proto::{LockMode, TokenBlock};

use super::{
    World,
    process::{Holding, State, Upgrade},
    waiter::waiter_of,
};
use crate::Event;

impl World {
    /// A user wants to have alone what it shares.
    pub(super) fn upgrade(&mut self, client: usize, key: usize) {
        let State::Holding(holding) = self.processes[client].users[key].state else {
            return;
        };
        // The attempt, and its token may have to be written back.
        let ask = self.ask(client, 2);
        let waiter = waiter_of(client, ask);
        self.trace.line(self.now, || {
            let lease = holding.lease;
            format!("client {client} tries to upgrade lease {lease} on key {key}")
        });
        let process = &mut self.processes[client];
        let now = process.now(self.now);
        let id = process.numbers.add(());
        process.users[key].upgrade = Some(Upgrade {
            id,
            waiter,
            owner: None,
        });
        process.client.upgrade(holding.id, id, now);
        self.counters.upgrades += 1;
    }

    /// An acquisition was won; if it upgrades a lease, the lease gives way to it, unless that is over.
    ///
    /// Returns whether the user has it now, as if it had waited for nothing else.
    pub(super) fn on_upgraded(&mut self, client: usize, id: u64, tokens: TokenBlock) -> bool {
        let Some((key, upgrade)) = self.end_upgrade(client, id) else {
            return false;
        };
        let process = &self.processes[client];
        let now = process.now(self.now);
        let is_valid = |holding: &Holding| !holding.is_lost && now.clock < holding.deadline;
        let shared = match process.users[key].state {
            State::Holding(shared) if is_valid(&shared) => shared,
            _ => {
                self.give_up_owner(client, upgrade.owner);
                return false;
            }
        };
        self.counters.upgraded += 1;
        self.trace.line(self.now, || {
            let lease = shared.lease;
            format!("client {client} has upgraded lease {lease} on key {key}: {tokens:?}")
        });
        let lease = shared.lease;
        self.observe(&Event::Released { lease });
        self.processes[client].client.release(shared.id, None, now);
        self.processes[client].numbers.remove(shared.id);
        self.give_up(client, key);
        let waiter = upgrade.waiter;
        let user = &mut self.processes[client].users[key];
        user.owner = upgrade.owner;
        user.mode = LockMode::Exclusive;
        // An upgraded lease is not handed over.
        user.terms = None;
        user.state = State::Waiting { id, waiter };
        true
    }

    /// An upgrade has come to nothing.
    pub(super) fn on_not_upgraded(&mut self, client: usize, id: u64) {
        if let Some((_, upgrade)) = self.end_upgrade(client, id) {
            self.give_up_owner(client, upgrade.owner);
        }
    }

    /// A user gives up what upgrades its lease, if something does.
    pub(super) fn drop_upgrade(&mut self, client: usize, key: usize) {
        let Some(upgrade) = self.processes[client].users[key].upgrade else {
            return;
        };
        let now = self.processes[client].now(self.now);
        self.processes[client].client.abandon(upgrade.id, now);
        self.processes[client].numbers.remove(upgrade.id);
        self.on_not_upgraded(client, upgrade.id);
        self.counters.abandoned += 1;
    }

    fn end_upgrade(&mut self, client: usize, id: u64) -> Option<(usize, Upgrade)> {
        let mut users = self.processes[client].users.iter_mut().enumerate();
        let ended = users.find_map(|(key, user)| {
            let ended = user.upgrade.take_if(|upgrade| upgrade.id == id);
            Some((key, ended?))
        });
        if let Some((_, Upgrade { waiter, .. })) = ended {
            self.observe(&Event::Answered { waiter });
        }
        ended
    }
}
