//! The faults of a world that is odd, or has strangers.

use std::ops::Range;

use super::{Data, Failing, Fault, Faults};
use crate::{
    Plan,
    random::Random,
    setup::{Birth, MS, Micros, Nap, Oddities, SECOND, Setup},
};

impl Oddities {
    /// Draws what goes wrong because of them.
    pub(crate) fn faults(
        self,
        setup: &Setup,
        random: &mut Random,
        first: Micros,
        faults: &mut Faults,
    ) {
        for _ in 0..self.failures {
            let at = random.between(first, setup.horizon);
            let node = random.index(setup.nodes);
            let length = random.pick(&[5 * MS, 50 * MS, 300 * MS]);
            let failing = random.pick(&[Failing::Some, Failing::Growth, Failing::All]);
            let fail = Fault::Fail {
                node,
                failing,
                length: random.between(MS, length),
            };
            faults.push((at, fail));
        }
        for _ in 0..self.seizures {
            let at = random.between(first, setup.horizon);
            let node = random.index(setup.nodes);
            let length = random.pick(&[10 * MS, 100 * MS, setup.max_ttl]);
            let length = random.between(MS, length);
            faults.push((at, Fault::Seize { node, length }));
        }
        if self.strands {
            stranded(setup, random, faults);
        }
        let rewound = few(setup, random);
        for _ in 0..self.rewinds {
            let Some(node) = rewound.get(random.index(rewound.len())).copied() else {
                continue;
            };
            let at = random.between(first, setup.horizon);
            faults.push((at, Fault::Snapshot { node }));
            let after = random.pick(&[2 * MS, 20 * MS, 200 * MS]);
            let at = at + random.between(MS, after);
            let shows = setup.plan != Plan::Rollback;
            faults.push((at, Fault::Rewind { node, shows }));
        }
        let jumping = few(setup, random);
        for _ in 0..self.jumps {
            let at = random.between(first, setup.calm());
            faults.extend(jump(&jumping, at, random));
        }
        for _ in 0..self.routes {
            mislead(setup, random, first, faults);
        }
        if let Some(nap) = self.nap {
            sleep(setup, nap, &jumping, random, faults);
        }
    }
}

/// Lets a majority learn tokens that the others do not; then a part of it loses them, and the rest is out of reach, or
/// behind an address that leads elsewhere, until those that have lost them might vote again.
fn stranded(setup: &Setup, random: &mut Random, faults: &mut Faults) {
    for round in 0..2 {
        let at = SECOND + round * setup.stranding() + random.below(300 * MS);
        let learns = random.between(50 * MS, 300 * MS);
        let mut nodes: Vec<usize> = (0..setup.nodes).collect();
        for place in (1..nodes.len()).rev() {
            nodes.swap(place, random.index(place + 1));
        }
        // All clients are replaced: the wall clocks of their successors cannot stand in for lost counters.
        for client in (0..setup.clients).filter(|_| round == 0) {
            let successor = Some(random.between(10 * MS, 300 * MS));
            faults.push((at, Fault::Kill { client, successor }));
        }
        let (knowing, others) = nodes.split_at(setup.quorum.majority());
        let losing = random.index(setup.quorum.tolerated()) + 1;
        for node in others {
            away(0..setup.clients, *node, (at - learns, learns), faults);
        }
        for (place, node) in knowing.iter().enumerate() {
            let length = setup.stranding() - 500 * MS + random.below(SECOND);
            let (node, down) = (*node, MS);
            if place < losing {
                let data = Data::Lost;
                faults.push((at, Fault::Crash { node, down, data }));
            } else if random.chance(300) {
                let (down, data) = (length, Data::Kept);
                faults.push((at, Fault::Crash { node, down, data }));
            } else if random.chance(300) {
                // Another server answers for it: one that has lost the tokens, or one that never knew them.
                let to = random.pick(&[knowing[0], others[0]]);
                let until = (at + length).min(setup.horizon);
                for client in 0..setup.clients {
                    lead(client, node, to, (at, until), faults);
                }
            } else {
                away(0..setup.clients, node, (at, length), faults);
            }
        }
    }
}

/// Keeps these clients from a node for so long.
fn away(clients: Range<usize>, node: usize, (at, length): (Micros, Micros), faults: &mut Faults) {
    for client in clients {
        let hole = Fault::Hole {
            client,
            node,
            out: true,
            back: true,
            length,
        };
        faults.push((at, hole));
    }
}

/// Leads a node's address to the server of another node for a while, and perhaps also the other way round.
///
/// So one server is behind two addresses, or two servers have changed places.
fn mislead(setup: &Setup, random: &mut Random, first: Micros, faults: &mut Faults) {
    let node = random.index(setup.nodes);
    let other = (node + 1 + random.index(setup.nodes - 1)) % setup.nodes;
    // An operator that blesses nodes has checked their addresses.
    let at = if setup.birth != Birth::Blessed && random.chance(300) {
        0
    } else {
        random.between(first, setup.horizon)
    };
    let length = random.pick(&[20 * MS, 200 * MS, SECOND, setup.horizon]);
    let until = (at + random.between(MS, length)).min(setup.horizon);
    let (of, by_all, swap) = (
        random.index(setup.clients),
        random.chance(300),
        random.chance(300),
    );
    for client in (0..setup.clients).filter(|client| by_all || *client == of) {
        for (node, to) in [(node, other), (other, node)]
            .into_iter()
            .take(1 + usize::from(swap))
        {
            lead(client, node, to, (at, until), faults);
        }
    }
}

/// Leads a client's address of a node to another server for a while.
fn lead(client: usize, node: usize, to: usize, (at, until): (Micros, Micros), faults: &mut Faults) {
    faults.push((at, Fault::Route { client, node, to }));
    let to = node;
    faults.push((until, Fault::Route { client, node, to }));
}

/// Draws as many nodes as a majority can miss.
fn few(setup: &Setup, random: &mut Random) -> Vec<usize> {
    let start = random.index(setup.nodes);
    let few = (start..start + setup.quorum.tolerated()).map(|node| node % setup.nodes);
    few.collect()
}

/// Lets only few nodes lose data, so that a majority never forgets what it was told.
pub(super) fn spare(setup: &Setup, random: &mut Random, faults: &mut Faults) {
    let losing = few(setup, random);
    faults.retain_mut(|(_, fault)| {
        match fault {
            Fault::Crash { node, data, .. } | Fault::Replace { node, data }
                if !losing.contains(node) =>
            {
                *data = Data::Kept;
            }
            Fault::Flush { node } => return losing.contains(node),
            _ => {}
        }
        true
    });
}

/// Lets all nodes but one lose their data, nearly at once, once all clients know what that one remembers.
pub(super) fn lose_all_but(setup: &Setup, keeper: usize, random: &mut Random, faults: &mut Faults) {
    let at = random.between(900 * MS, setup.calm().max(SECOND));
    for node in (0..setup.nodes).filter(|node| *node != keeper) {
        let at = at + random.below(20 * MS);
        faults.push((at, Fault::Flush { node }));
    }
}

/// Sets a clock forward so far that it agrees with no other.
fn jump(jumping: &[usize], at: Micros, random: &mut Random) -> Option<(Micros, Fault)> {
    let node = *jumping.get(random.index(jumping.len().max(1)))?;
    let by = random.between(2 * SECOND + 500 * MS, 6 * SECOND);
    let by = by.cast_signed();
    Some((at, Fault::Step { node, by }))
}

/// Moves what goes wrong later behind the nap, in which some clients stand still; a clock may
/// jump just before they go on.
fn sleep(setup: &Setup, nap: Nap, jumping: &[usize], random: &mut Random, faults: &mut Faults) {
    let length = nap.until - nap.from;
    for (at, _) in faults.iter_mut().filter(|(at, _)| *at >= nap.from) {
        *at += length;
    }
    let sleepers = (1 + random.index(2)).min(setup.clients - 1);
    for client in 0..sleepers {
        let at = nap.from + random.below(200 * MS);
        let length = nap.until - at - random.below(100 * MS);
        faults.push((at, Fault::Pause { client, length }));
    }
    let at = nap.until - random.below(setup.max_ttl / 4);
    let jump = jump(jumping, at, random).filter(|_| random.chance(700));
    if let Some((at, Fault::Step { node: jumps, by })) = jump {
        faults.push((at, Fault::Step { node: jumps, by }));
        // The clients that are awake acquire from a bare majority, which includes the node whose clock jumps.
        let others = (1..setup.nodes).map(|next| (jumps + next) % setup.nodes);
        for node in others.take(setup.quorum.tolerated()) {
            let at = nap.until - setup.max_ttl - 200 * MS;
            let length = setup.max_ttl + random.below(400 * MS);
            away(sleepers..setup.clients, node, (at, length), faults);
        }
    }
}
