//! The end of a world: everything is repaired, and must come to rest.

use super::{World, agenda::Due, process::State};
use crate::{
    Event, Moment, Plan,
    fault::Fate,
    setup::{MS, Micros, SECOND, Strangers, micros},
};

/// How far a world is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Things go wrong.
    Faulty,
    /// Nothing goes wrong any more, since a moment.
    Repaired { at: Micros },
    /// Clients are closed, and what they were doing comes to its end.
    Closing { repaired: Micros },
}

impl Phase {
    pub(super) const fn is_faulty(self) -> bool {
        matches!(self, Self::Faulty)
    }

    pub(super) const fn is_closing(self) -> bool {
        matches!(self, Self::Closing { .. })
    }

    /// Since when nothing goes wrong any more.
    pub(super) const fn repaired(self) -> Option<Micros> {
        match self {
            Self::Faulty => None,
            Self::Repaired { at } | Self::Closing { repaired: at } => Some(at),
        }
    }
}

impl World {
    /// Everything is repaired.
    pub(super) fn on_repair(&mut self) {
        self.trace
            .line(self.now, || "everything is repaired".into());
        self.phase = Phase::Repaired { at: self.now };
        self.observe(&Event::Mended);
        for server in &mut self.servers {
            server.frozen_until = 0;
            server.seizes = None;
            server.fails = None;
        }
        self.set_clocks_right();
        self.repair_naming();
        for node in 0..self.setup.servers() {
            if !self.servers[node].is_up {
                self.on_restart(node);
            }
        }
        for link in 0..self.links.len() {
            let this = &mut self.links[link];
            this.hole_out = 0;
            this.hole_back = 0;
            // Whatever is slow or in a hole is not waited for.
            let conn = this.conn;
            if !this.out.is_empty() || !this.back.is_empty() {
                self.sever(link, Fate::Late(MS));
                self.agenda.add(self.now + MS, Due::Lost { link, conn });
            }
            let (_, own) = self.ends(link);
            if self.setup.named.is_none() {
                self.reroute(link, own);
            }
        }
        for (serial, call) in self.calls.late() {
            self.agenda
                .add(self.now + 2 * MS, Due::ArriveLate { call, serial });
        }
        for client in 0..self.setup.clients {
            let process = &mut self.processes[client];
            if process.is_paused(self.now) {
                // Not at once: what else is due now must not come to it before it has woken.
                let at = self.now + 1;
                process.paused_until = at;
                let life = process.life;
                self.agenda.add(at, Due::Wake { client, life });
            }
        }
        // Nodes that forgot refuse what could have been claimed before they voted again.
        let early = self.setup.jobs.map_or(0, |jobs| 2 * jobs.early * MS);
        let wait = self.repair_takes() + 3 * self.setup.max_ttl + self.behind + SECOND + early;
        // A client whose clock is off by an hour claims nothing, and a stranger has nothing.
        let all_can = self.setup.ahead(0) == 0 && self.setup.strangers.is_none();
        let can = |client: usize| {
            let is_stranger = self.setup.is_stranger(client);
            self.setup.ahead(client) == 0 && !is_stranger && self.processes[client].is_alive
        };
        // A node that remembers longer leases than theirs keeps clients from letting any node vote.
        let loses = |strangers: &Strangers| strangers.keeper.is_some();
        let is_held_up =
            self.setup.are_strangers_longer() || self.setup.strangers.as_ref().is_some_and(loses);
        let somebody_can = !is_held_up && (all_can || (0..self.setup.clients).any(can));
        if self.setup.plan == Plan::Shared {
            // One that was killed just now comes back.
            let first = (0..self.setup.clients).find(|client| can(*client));
            self.loner = first.or_else(|| all_can.then_some(0));
        }
        // A caller of several keys may wait until callers of single keys rest, because these take its keys repeatedly.
        let singles = self.setup.keys.len();
        let until = if self.setup.sets.is_empty() {
            self.now + wait
        } else {
            self.singles_rest_at = Some(self.now + wait);
            self.now + 2 * wait
        };
        for key in (0..self.setup.locks()).filter(|_| somebody_can) {
            let due = if key < singles {
                self.now + wait
            } else {
                until
            };
            let due = Moment::from_micros(due);
            self.observe(&Event::Free { key, due });
        }
        let mut first = self.reconnected_by(self.now) + 4 * SOON;
        if self.setup.jobs.is_some() {
            let settled = self.now + self.repair_takes();
            self.agenda.add(settled, Due::Settle);
            if self.setup.plan.sets_all_clocks() {
                first = first.max(settled + 6 * SOON);
            }
        }
        self.agenda.add(first, Due::Close { last: false });
        self.agenda.add(until + 1, Due::Close { last: true });
    }

    /// Returns how long it takes until every node votes that can.
    fn repair_takes(&self) -> Micros {
        let pauses = 2 * micros(self.setup.link.longest_pause);
        let naming = self.naming_takes();
        self.setup.quarantine() + naming + pauses + 12 * self.setup.node_timeout + SECOND
    }

    /// Returns when every client is connected to every node, if everything was repaired at a moment.
    pub(super) fn reconnected_by(&self, repaired: Micros) -> Micros {
        let limits = self.setup.link;
        repaired + self.naming_takes() + micros(2 * limits.longest_pause + limits.connect_timeout)
    }

    fn set_clocks_right(&mut self) {
        if self.setup.plan.sets_all_clocks() {
            return self.set_clocks_alike();
        }
        for node in 0..self.setup.servers() {
            let by = self.stepped[node];
            if by != 0 {
                self.servers[node].set_clock(-by, self.now);
                self.stepped[node] = 0;
                // It may keep its keys for longer by so much.
                self.behind += by.max(0).cast_unsigned();
            }
        }
    }

    /// No clock of a node is set back, so all are set to what the first of them shows, and those of clients too.
    fn set_clocks_alike(&mut self) {
        let first = self.stepped.iter().copied().max().unwrap_or(0).max(0);
        for node in 0..self.setup.nodes {
            self.on_right(node);
            let by = first - self.stepped[node];
            self.servers[node].set_clock(by, self.now);
            self.stepped[node] = first;
        }
        for process in &mut self.processes {
            process.set_wall(first);
        }
    }

    /// Takes what was broken to be mended: from now on, whatever is not won has a reason.
    pub(super) fn on_settled(&mut self) {
        if !self.phase.is_closing() {
            self.settled = Some(self.now);
            self.observe(&Event::Settled);
        }
    }

    /// Clients are closed, at the latest when every key must have been acquired.
    pub(super) fn on_close(&mut self, last: bool) {
        if self.phase.is_closing() {
            return;
        }
        if !last && self.checker.expects_something() {
            self.agenda.add(self.now + SOON, Due::Close { last });
            return;
        }
        let Some(repaired) = self.phase.repaired() else {
            return;
        };
        self.trace.line(self.now, || "clients are closed".into());
        self.phase = Phase::Closing { repaired };
        for client in 0..self.setup.clients {
            if self.processes[client].is_alive {
                self.close(client);
            }
        }
        let ttl = self.setup.max_ttl;
        let end = self.now + ttl + ttl / 40 + self.behind + 200 * MS + self.setup.node_timeout;
        self.agenda.add(end, Due::End);
    }

    /// A client's users are done, and it is closed.
    pub(super) fn close(&mut self, client: usize) {
        self.processes[client].is_closed = true;
        for waiter in self.processes[client].callers.waiters() {
            self.go_away(client, waiter);
        }
        for key in 0..self.setup.locks() {
            if let State::Holding(_) = self.processes[client].users[key].state {
                self.done_with(client, key);
            }
        }
        let now = self.processes[client].now(self.now);
        self.processes[client].client.close(now);
        self.settle(client);
    }

    /// Checks that no node has a key any more, and that no client believes that anything is under way.
    pub(super) fn end(&mut self) {
        self.look_at_watermarks();
        self.look_for_open_runs();
        for node in 0..self.setup.servers() {
            for key in 0..self.setup.keys.len() {
                let server = &self.servers[node];
                let name = &self.setup.keys[key];
                let time = server.time(self.now);
                if server.store.holders(name, time).next().is_some() {
                    let due = Moment::START;
                    self.observe(&Event::KeyFound { node, key, due });
                }
            }
        }
        for client in 0..self.setup.clients {
            if !self.processes[client].is_alive {
                continue;
            }
            let mut under_way = 0;
            for node in 0..self.setup.nodes {
                let link = self.link(client, node);
                under_way += self.links[link].machine.open_requests();
            }
            let machine = &self.processes[client].client;
            let requests = machine.open_requests().saturating_sub(under_way);
            let is_clean = machine.is_clean();
            self.observe(&Event::Rests {
                client,
                requests,
                is_clean,
            });
        }
    }
}

/// Within which time a key that was given up is gone where nothing goes wrong.
pub(super) const SOON: Micros = 50 * MS;
