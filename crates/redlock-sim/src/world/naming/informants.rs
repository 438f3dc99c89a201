use redlock_proto::{InformantId, Pair, Statement};

use super::{super::World, messages::Message};
use crate::setup::{INFORMANTS, Micros};

/// The informants of a node, and what its two servers are.
#[derive(Debug)]
pub(super) struct Informants {
    pub(super) all: [Informant; INFORMANTS],
    /// Whether each server takes itself for a master; one of them does.
    pub(super) are_masters: [bool; 2],
    /// Until when each client hears nothing of each informant.
    pub(super) deaf: Vec<[Micros; INFORMANTS]>,
    /// How many that are gone the informants still count.
    pub(super) ghosts: usize,
    node: usize,
    /// How many ids were given.
    ids: u64,
}

/// One of the informants of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Informant {
    pub(super) id: InformantId,
    /// The pair that it names; the server is the first or the second of its node.
    pub(super) pair: Pair<usize>,
    /// The greatest epoch of an election of which it knows.
    pub(super) seen: u64,
    /// It leads a failover, and names no server meanwhile.
    pub(super) leads: bool,
    /// The server that it has promoted in this failover.
    pub(super) promoted: Option<usize>,
    /// It hears nothing of the others before this.
    pub(super) apart_until: Micros,
    /// It does nothing before this.
    pub(super) still_until: Micros,
}

impl Informants {
    pub(super) fn new(node: usize, clients: usize) -> Self {
        let mut informants = Self {
            all: [Informant::new(InformantId::new(0)); INFORMANTS],
            are_masters: [true, false],
            deaf: vec![[0; INFORMANTS]; clients],
            ghosts: 0,
            node,
            ids: 0,
        };
        (0..INFORMANTS).for_each(|informant| informants.lose_file(informant));
        informants
    }

    /// Makes an informant one that was installed just now.
    pub(super) fn lose_file(&mut self, informant: usize) {
        self.ids += 1;
        let id = InformantId::new(((self.node as u64 + 1) << 12) + self.ids);
        let old = self.all[informant];
        self.all[informant] = Informant {
            apart_until: old.apart_until,
            still_until: old.still_until,
            ..Informant::new(id)
        };
    }

    /// Returns whether an informant can reach the others.
    pub(super) fn is_among_others(&self, informant: usize, now: Micros) -> bool {
        let Informant {
            apart_until,
            still_until,
            ..
        } = self.all[informant];
        apart_until.max(still_until) <= now
    }

    /// Returns the informant that knows the greatest epoch.
    pub(super) fn newest(&self) -> Informant {
        let mut newest = self.all[0];
        for informant in self.all {
            if informant.pair.epoch > newest.pair.epoch {
                newest = informant;
            }
        }
        newest
    }
}

impl Informant {
    const fn new(id: InformantId) -> Self {
        Self {
            id,
            pair: Pair {
                server: 0,
                epoch: 0,
            },
            seen: 0,
            leads: false,
            promoted: None,
            apart_until: 0,
            still_until: 0,
        }
    }

    /// Returns the pair of which it tells the others: during a failover the new one, which it does not name yet.
    pub(super) fn advertised(&self) -> Pair<usize> {
        Pair {
            server: self.promoted.unwrap_or(self.pair.server),
            epoch: self.pair.epoch,
        }
    }

    /// Ends the failover that it leads, if it leads one.
    pub(super) const fn end_failover(&mut self) {
        self.leads = false;
        self.promoted = None;
    }

    /// Hears another informant; returns whether it takes over its pair.
    pub(super) fn hear(&mut self, other: &Self) -> bool {
        self.seen = self.seen.max(other.seen);
        let is_newer = other.pair.epoch > self.pair.epoch;
        if is_newer {
            self.pair = other.advertised();
            self.end_failover();
        }
        is_newer
    }
}

impl World {
    pub(super) fn begin_hellos(&mut self, node: usize) {
        for informant in 0..INFORMANTS {
            self.say_hello_again(node, informant);
        }
    }

    fn say_hello_again(&mut self, node: usize, informant: usize) {
        let about = self.setup.named.map_or(0, |named| named.hello);
        let at = self.now + self.random.between(about / 2, about * 3 / 2);
        self.send(at, Message::Hello { node, informant });
    }

    /// An informant tells the others which server it names.
    pub(super) fn on_hello(&mut self, node: usize, from: usize) {
        self.say_hello_again(node, from);
        if !self.naming.nodes[node].is_among_others(from, self.now) {
            return;
        }
        let lost = self.setup.named.map_or(0, |named| named.unheard);
        for to in (0..INFORMANTS).filter(|to| *to != from) {
            let is_lost = self.phase.is_faulty() && self.random.chance(lost);
            let informants = &mut self.naming.nodes[node];
            if is_lost || !informants.is_among_others(to, self.now) {
                continue;
            }
            let other = informants.all[from];
            if informants.all[to].hear(&other) {
                let pair = told(informants.all[to].pair);
                self.trace.line(self.now, || {
                    format!("informant {to} of node {node} hears of {pair} from informant {from}")
                });
            }
        }
    }

    pub(super) fn lose_file(&mut self, node: usize, informant: usize) {
        self.counters.files_lost += 1;
        let informants = &mut self.naming.nodes[node];
        let old = informants.all[informant].id;
        informants.lose_file(informant);
        informants.ghosts += usize::from(self.setup.named.is_some_and(|named| named.ghosts));
        let new = informants.all[informant].id;
        self.trace.line(self.now, || {
            format!("informant {informant} of node {node} has lost its file: {old} is {new} now")
        });
    }

    /// Returns what an informant says of the server of its node.
    pub(super) fn statement(&self, node: usize, informant: usize) -> Statement<usize> {
        let Informant {
            id, pair, leads, ..
        } = self.naming.nodes[node].all[informant];
        let pair = Pair {
            server: node + pair.server * self.setup.nodes,
            epoch: pair.epoch,
        };
        Statement {
            by: id,
            names: (!leads).then_some(pair),
            known: INFORMANTS + self.naming.nodes[node].ghosts,
            running: INFORMANTS,
            is_moving: None,
        }
    }

    /// Returns whether a server takes itself for a replica, and carries out nothing that writes.
    pub(in super::super) fn is_replica(&self, server: usize) -> bool {
        let node = self.setup.node_of(server);
        let informants = self.naming.nodes.get(node);
        informants.is_some_and(|it| !it.are_masters[server / self.setup.nodes])
    }
}

/// Returns a pair with the place of the server among those of its node, where there are so many nodes.
pub(super) const fn of_node(pair: Pair<usize>, nodes: usize) -> Pair<usize> {
    Pair {
        server: pair.server / nodes,
        ..pair
    }
}

/// Returns a pair, in words.
pub(super) fn told(pair: Pair<usize>) -> String {
    let server = if pair.server == 0 { 'A' } else { 'B' };
    format!("{server} under epoch {}", pair.epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_informant_takes_over_a_greater_epoch_and_no_other() {
        let mut informants = Informants::new(0, 1);
        informants.all[0].pair = Pair {
            server: 0,
            epoch: 1,
        };
        informants.all[0].promoted = Some(1);
        let [leader, mut other, _] = informants.all;
        assert!(other.hear(&leader));
        assert_eq!(
            other.pair,
            Pair {
                server: 1,
                epoch: 1
            },
            "what it has promoted"
        );
        informants.all[0].promoted = None;
        assert!(!other.hear(&informants.all[0]), "it is the same epoch");
        informants.all[1] = other;
        informants.lose_file(1);
        let lost = informants.all[1];
        assert_ne!(lost.id, other.id);
        assert_eq!(
            (lost.pair, lost.seen),
            (
                Pair {
                    server: 0,
                    epoch: 0
                },
                0
            )
        );
        assert!(!other.hear(&lost));
    }
}
