//! The owners that take keys: one for each attempt, and what nodes have promised to each.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use redlock_proto::OwnerId;

use crate::setup::Micros;

/// The most nodes that a world has, and the most servers.
pub(super) const MOST_NODES: usize = 7;

/// All owners there ever were, by number.
#[derive(Debug, Default)]
pub(super) struct Owners {
    numbers: HashMap<OwnerId, u32, BuildHasherDefault<Bits>>,
    owners: Vec<Owner>,
}

/// One attempt's owner, and the lease's if it won.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) key: usize,
    /// The client, and which process in its place; another knows nothing of it.
    pub(super) client: (usize, u32),
    /// Its name on the nodes.
    pub(super) name: OwnerId,
    /// How long nodes keep its key.
    pub(super) ttl: Micros,
    /// The address over which each node was asked for its place in line.
    pub(super) line_over: [Option<usize>; MOST_NODES],
    /// The addresses over which nodes were asked for its key.
    asked: u8,
    /// When its attempt was started, in true time.
    pub(super) started: Micros,
    /// When it was given up, in true time.
    pub(super) over: Option<Micros>,
    /// Whether its key may stay for its time to live, because the holder left it.
    pub(super) stays: bool,
    /// Up to when each node keeps its key, in true time, by grants that are votes.
    pub(super) promised: [Micros; MOST_NODES],
    /// What the clock of each node that votes showed, in milliseconds, when it granted a claim.
    pub(super) granted: [Option<u64>; MOST_NODES],
    /// The address over which each node took its key.
    taken_over: [Option<usize>; MOST_NODES],
    /// The addresses over which its client told nodes to let its key go.
    told: u8,
    /// Where it was told to let its key go.
    gone: [Option<Gone>; MOST_NODES],
    /// The run that was claimed with its key: tick and token.
    pub(super) run: Option<(u64, u64)>,
    /// Its rounds of extension, as far as its client knows.
    rounds: Vec<Seen>,
}

/// A node was told to let an owner's key go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    /// In which life of its data.
    pub(super) life: u32,
    /// When, in true time.
    pub(super) at: Micros,
    /// Up to which millisecond of the node's clock nothing of the owner may appear again.
    pub(super) until: u64,
    /// Over which address: requests over others may be overtaken by it.
    pub(super) address: usize,
    /// Whether a tombstone tells what comes over the others.
    ///
    /// A transaction does not look for one: the release over its own address follows it.
    pub(super) is_tombstoned: bool,
}

/// What a client has heard in a round of extension.
#[derive(Clone, Copy, Debug)]
struct Seen {
    round: u64,
    /// By the node of the server: one that is behind two addresses confirms once.
    confirmed: u8,
    /// By address.
    missing: u8,
}

impl Owners {
    pub(super) fn number(&self, owner: &OwnerId) -> Option<u32> {
        self.numbers.get(owner).copied()
    }

    pub(super) fn add(
        &mut self,
        name: OwnerId,
        key: usize,
        client: (usize, u32),
        ttl: Micros,
        started: Micros,
    ) -> u32 {
        let number = u32::try_from(self.owners.len()).unwrap_or(u32::MAX);
        self.numbers.insert(name, number);
        self.owners.push(Owner {
            key,
            client,
            name,
            ttl,
            line_over: [None; MOST_NODES],
            started,
            over: None,
            stays: false,
            promised: [0; MOST_NODES],
            granted: [None; MOST_NODES],
            taken_over: [None; MOST_NODES],
            asked: 0,
            told: 0,
            gone: [None; MOST_NODES],
            run: None,
            rounds: Vec::new(),
        });
        number
    }

    pub(super) fn get(&self, number: u32) -> &Owner {
        &self.owners[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Owner {
        &mut self.owners[number as usize]
    }
}

impl Owner {
    /// Returns up to when so many of the nodes keep its key; a node keeps it for as long as one of its servers does.
    pub(super) fn promised_by(&self, count: usize, nodes: usize) -> Micros {
        let mut promised = [0; MOST_NODES];
        for (server, until) in self.promised.into_iter().enumerate() {
            let node = server % nodes;
            promised[node] = until.max(promised[node]);
        }
        promised.sort_unstable();
        promised[MOST_NODES - count]
    }

    /// Its client asks a node for its key; returns whether that is later than it asked others.
    pub(super) fn asks(&mut self, address: usize, now: Micros) -> bool {
        self.asked |= 1 << address;
        now > self.started
    }

    /// Returns at how many addresses its client has asked for its key.
    pub(super) const fn asked(&self) -> usize {
        self.asked.count_ones() as usize
    }

    /// Its client tells a node, behind an address, to let its key go, whatever that has promised.
    pub(super) const fn tell(&mut self, node: usize, address: usize) {
        self.promised[node] = 0;
        self.told |= 1 << address;
    }

    /// Returns whether its client told whatever is behind an address to let its key go.
    pub(super) const fn is_told(&self, address: usize) -> bool {
        self.told >> address & 1 == 1
    }

    /// A node took its key, over an address.
    pub(super) const fn take(&mut self, node: usize, address: usize) {
        self.taken_over[node] = Some(address);
    }

    /// Returns the address over which a node took its key, if it did.
    pub(super) const fn taken_over(&self, node: usize) -> Option<usize> {
        self.taken_over[node]
    }

    /// A node was told to let its key go, and promises nothing any more.
    pub(super) const fn be_gone(&mut self, node: usize, gone: Gone) {
        self.promised[node] = 0;
        self.gone[node] = Some(gone);
    }

    /// Returns when and where a node was told to let its key go, if it was.
    pub(super) const fn gone(&self, node: usize) -> Option<Gone> {
        self.gone[node]
    }

    /// In a round of extension, its client has heard from a server that confirmed, or behind an address that its key
    /// is missing.
    pub(super) fn heard(&mut self, round: u64, confirmed: Option<usize>, missing: Option<usize>) {
        let bit = |place: Option<usize>| place.map_or(0, |place| 1 << place);
        let (confirmed, missing) = (bit(confirmed), bit(missing));
        match self
            .rounds
            .iter_mut()
            .rev()
            .find(|seen| seen.round == round)
        {
            Some(seen) => {
                seen.confirmed |= confirmed;
                seen.missing |= missing;
            }
            None => self.rounds.push(Seen {
                round,
                confirmed,
                missing,
            }),
        }
    }

    /// Returns whether a node said that it lost the key in a round that so many others confirmed.
    pub(super) fn may_heal(&self, node: usize, majority: usize) -> bool {
        self.rounds.iter().any(|seen| {
            seen.missing >> node & 1 == 1 && seen.confirmed.count_ones() as usize >= majority
        })
    }
}

/// Owners are random already, so their own bits will do to find them by.
#[derive(Default)]
struct Bits(u64);

impl Hasher for Bits {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        let mut owners = Owners::default();
        let number = owners.add(OwnerId::from_random([1; 16]), 0, (0, 0), 100, 0);
        assert_eq!(owners.number(&OwnerId::from_random([1; 16])), Some(number));
        assert_eq!(owners.number(&OwnerId::from_random([2; 16])), None);
        owners.get(number).clone()
    }

    #[test]
    fn a_majority_keeps_a_key_for_as_long_as_the_least_of_its_promises() {
        let mut owner = owner();
        owner.promised[0] = 50;
        owner.promised[3] = 70;
        owner.promised[4] = 60;
        assert_eq!(owner.promised_by(3, 7), 50);
        assert_eq!(owner.promised_by(2, 7), 60);
        assert_eq!(owner.promised_by(4, 7), 0);
        assert_eq!(
            owner.promised_by(2, 3),
            60,
            "0 and 3 are servers of one node"
        );
    }

    #[test]
    fn only_a_node_that_lost_a_key_which_others_confirmed_in_that_round_may_be_healed() {
        let mut owner = owner();
        owner.heard(7, Some(0), None);
        owner.heard(7, None, Some(2));
        assert!(!owner.may_heal(2, 2), "one has confirmed");
        owner.heard(8, Some(1), None);
        assert!(!owner.may_heal(2, 2), "another has in another round");
        owner.heard(7, Some(0), None);
        assert!(!owner.may_heal(2, 2), "it is the same server once more");
        owner.heard(7, Some(1), None);
        assert!(owner.may_heal(2, 2));
        assert!(!owner.may_heal(0, 2), "it has not lost it");
    }
}
