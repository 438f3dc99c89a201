//! The requests of a client to nodes, and how the world counts them.

use std::{fmt, time::Duration};

use redlock_proto::{KeySet, Lock, LockMode, NodeVerb, OwnerId, Request, Verb};

use super::{
    World,
    link::Degraded,
    process::{State, User},
};
use crate::{Event, setup::micros};

impl World {
    pub(super) fn on_send(
        &mut self,
        client: usize,
        node: usize,
        round: u64,
        request: Request,
        connection: u64,
    ) {
        let mut number = None;
        if let Request::Lock { verb, lock } = &request {
            let Lock { mode, keys, owner } = &**lock;
            self.processes[client].has_asked |= !request.is_release();
            number = self.owners.number(owner);
            match verb {
                // It only keeps a place in line, and never gets the key.
                Verb::Acquire {
                    line: Some(line), ..
                } if line.grant.is_zero() => self.counters.places_kept += 1,
                Verb::Acquire { ttl, .. } if number.is_none() => {
                    let is_upgrade = matches!(mode, LockMode::Upgrade { .. });
                    number = self.tries(client, (keys, is_upgrade), *owner, *ttl);
                    self.asks(number, node);
                }
                Verb::Acquire { .. } => self.asks(number, node),
                Verb::Extend {
                    write_back: None, ..
                } => {
                    let users = self.processes[client].users.iter();
                    let is_parked = |user: &User| {
                        let is_its = number.is_some() && user.owner == number;
                        is_its && matches!(user.state, State::Holding(held) if held.is_parked)
                    };
                    if let Some(key) = users.clone().position(is_parked) {
                        let what = "a lease is extended while nobody holds it";
                        self.out_of_turn(client, key, what);
                    }
                }
                Verb::Extend { .. } => {
                    let process = &mut self.processes[client];
                    if process.last_write_back != round {
                        process.last_write_back = round;
                        self.counters.write_backs += 1;
                    }
                }
                Verb::Heal { .. } => {
                    let majority = self.setup.quorum.majority();
                    let confirmed =
                        number.is_some_and(|n| self.owners.get(n).may_heal(node, majority));
                    self.observe(&Event::Healed { node, confirmed });
                }
                Verb::Release { .. } | Verb::Tombstone { .. } => {
                    if let Some(number) = number {
                        let server = self.links[self.link(client, node)].server;
                        let owner = self.owners.get_mut(number);
                        owner.tell(server, node);
                        owner.over.get_or_insert(self.now);
                    }
                }
            }
        }
        if let Request::Lock {
            verb: Verb::Acquire {
                line: Some(line), ..
            },
            ..
        } = &request
            && let Some(owner) = number
        {
            self.asks_for_a_place(line, owner);
        }
        if let Request::Job { verb, .. } = &request {
            self.processes[client].has_asked = true;
            if node == 0 {
                self.on_record(verb);
            }
            number = self.on_send_job(client, round, verb);
        }
        // A client that degrades a node reports that first.
        let opens = matches!(request, Request::Node(NodeVerb::Open { .. }));
        if opens {
            self.note_vote_told(node);
        }
        let degrades = &mut self.processes[client].degrades;
        let is_degraded = |degraded: &mut Degraded| opens && degraded.node == node;
        let degraded = degrades.take_if(is_degraded);
        let link = self.link(client, node);
        let now = self.instant(link);
        let this = &mut self.links[link];
        this.degrades = degraded.or(this.degrades);
        self.trace.line(self.now, || {
            let (up, to) = (this.machine.is_up(), Told(&request, number));
            let up = if up { "" } else { " (not connected)" };
            format!("client {client} to node {node}{up}, round {round}: {to}")
        });
        this.machine.push(round, request, connection, now);
        this.has_requests = true;
    }

    /// An attempt begins, under an owner that was never used before; perhaps beside one that shares the keys.
    pub(super) fn tries(
        &mut self,
        client: usize,
        (keys, is_upgrade): (&KeySet, bool),
        owner: OwnerId,
        ttl: Duration,
    ) -> Option<u32> {
        let key = (0..self.setup.locks()).find(|lock| self.setup.names_of(*lock) == *keys)?;
        self.counters.attempts += 1;
        if !is_upgrade {
            self.give_up(client, key);
        }
        let process = &mut self.processes[client];
        let by = (client, process.life);
        let added = self.owners.add(owner, key, by, micros(ttl), self.now);
        if is_upgrade {
            let upgrade = process.users[key].upgrade.as_mut();
            upgrade?.owner = Some(added);
            return Some(added);
        }
        process.users[key].owner = Some(added);
        if let State::Waiting { waiter, .. } = process.users[key].state {
            self.observe(&Event::Tries { waiter });
        }
        Some(added)
    }

    /// A node is asked for the key of this owner.
    fn asks(&mut self, owner: Option<u32>, node: usize) {
        if let Some(owner) = owner {
            let is_later = self.owners.get_mut(owner).asks(node, self.now);
            self.counters.widened += u64::from(is_later);
        }
    }
}

/// A request and its owner, in words.
struct Told<'a>(&'a Request, Option<u32>);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(Request::Lock { verb, .. }, Some(owner)) => {
                write!(f, "{verb:?} for owner {owner}")
            }
            Self(Request::Lock { verb, .. }, None) => write!(f, "{verb:?}"),
            Self(Request::Node(verb), _) => write!(f, "{verb:?}"),
            Self(Request::Job { verb, .. }, _) => write!(f, "{verb:?}"),
        }
    }
}
