//! What is odd about a world besides: each in a few worlds only, some of them together.
//!
//! They are drawn from a generator of their own, so that a world without them is the same as if there were none.

use std::{num::NonZeroUsize, ops::Range};

use redlock_proto::Quorum;

use crate::{
    Plan,
    fault::{Data, Failing, Fault},
    random::Random,
    setup::{Birth, MS, Micros, Net, SECOND, Setup, Storm},
};

type Faults = Vec<(Micros, Fault)>;

/// Which of them a world has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Oddities {
    /// Nodes that know the newest tokens lose them or cannot be reached, while those that are left do not know them.
    pub(crate) strands: bool,
    /// There are more clients and keys than usual.
    pub(crate) crowds: bool,
    /// For how long clocks keep their rate.
    pub(crate) stretch: Option<Micros>,
    /// Clients that go on see to their users and timers first, and then read what has come.
    pub(crate) suspends: bool,
    /// How often some operations of calls fail for a while.
    pub(crate) failures: u64,
    /// How often a node stands still in the middle of a call.
    pub(crate) seizures: u64,
    /// How often the clock of a node jumps by more than a second, of so few nodes that a majority's never does.
    pub(crate) jumps: u64,
    /// How often the data of one of few nodes is replaced by older data; nothing shows it where that is the plan.
    pub(crate) rewinds: u64,
    /// How often an address leads to another server for a while, of one client or of all.
    pub(crate) routes: u64,
    /// A time in which hardly anybody does anything, and some clients stand still.
    pub(crate) nap: Option<Nap>,
}

/// A long time in which hardly anybody does anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nap {
    pub(crate) from: Micros,
    pub(crate) until: Micros,
}

impl Oddities {
    pub(crate) fn draw(setup: &mut Setup, random: &mut Random) -> Self {
        let mut odd = Self::default();
        if setup.plan == Plan::Rollback {
            odd.rewinds = random.between(1, 6);
        }
        if random.chance(700) {
            return odd;
        }
        let has_order = setup.plan == Plan::Default;
        let keeps_clocks = !setup.plan.sets_clocks();
        if random.chance(250) {
            odd.stretch = Some(random.pick(&[30 * MS, 300 * MS, 2 * SECOND]));
        }
        odd.failures = up_to(&[0, 0, 0, 3], random);
        odd.seizures = up_to(&[0, 0, 0, 5], random);
        odd.suspends = random.chance(300);
        if setup.plan != Plan::Rollback && !setup.trust {
            odd.rewinds = up_to(&[0, 0, 0, 4], random);
        }
        match random.below(6) {
            0 if has_order => {
                odd.strands = true;
                setup.strand(random);
            }
            1 if !setup.forgets => {
                odd.crowds = true;
                setup.crowd(random);
            }
            2 if has_order => {
                let from = random.between(300 * MS, calm(setup));
                let until = from + random.between(60, 400) * SECOND;
                odd.nap = Some(Nap { from, until });
                odd.jumps = random.below(2);
                setup.stray = false;
                setup.clients = setup.clients.min(3);
            }
            3 if has_order && keeps_clocks => {
                odd.jumps = random.between(1, 3);
                setup.stray = false;
            }
            4 if has_order && setup.nodes > 1 => odd.routes = random.between(1, 6),
            _ => {}
        }
        odd
    }

    /// What goes wrong because of them.
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
            let at = random.between(first, calm(setup));
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

impl Setup {
    /// Few nodes with little data, and clients whose wall clocks are far apart: order rests on the floors that
    /// nodes are told.
    fn strand(&mut self, random: &mut Random) {
        self.nodes = random.pick(&[3, 3, 5]);
        self.quorum = Quorum::of(NonZeroUsize::new(self.nodes).unwrap_or(NonZeroUsize::MIN));
        self.keys.truncate(1);
        self.set_max_ttl(random.pick(&[300 * MS, 500 * MS]), false);
        self.skew = 30 * SECOND;
        self.stray = false;
        self.birth = Birth::Vouched;
        self.forgets = true;
        self.rolls = false;
        self.storm = Storm {
            cuts: random.below(4),
            kills: random.between(1, 3),
            ..Storm::default()
        };
        self.net = Net {
            slow: 0,
            ..self.net
        };
        self.think = 20 * MS;
        self.horizon = 2 * stranding(self) + SECOND;
    }

    /// More clients and keys than usual, which are asked for less often.
    fn crowd(&mut self, random: &mut Random) {
        self.clients = random.index(3) + 6;
        let keys = random.index(3) + 4;
        self.set_keys(keys);
        self.think = (4 * self.think).max(120 * MS);
    }
}

/// For how long nodes are out of reach: longer than it takes to do without them.
fn stranding(setup: &Setup) -> Micros {
    setup.quarantine() + 2 * SECOND
}

/// A majority learns tokens that the others do not; then a part of it loses them, and the rest is out of reach until
/// those that have lost them might vote again.
fn stranded(setup: &Setup, random: &mut Random, faults: &mut Faults) {
    for round in 0..2 {
        let at = SECOND + round * stranding(setup) + random.below(300 * MS);
        let learns = random.between(50 * MS, 300 * MS);
        let mut nodes: Vec<usize> = (0..setup.nodes).collect();
        for place in (1..nodes.len()).rev() {
            nodes.swap(place, random.index(place + 1));
        }
        // The wall clocks of those who are left stand in for nothing.
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
            let length = stranding(setup) - 500 * MS + random.below(SECOND);
            let (node, down) = (*node, MS);
            match place < losing {
                true => {
                    let data = Data::Lost;
                    faults.push((at, Fault::Crash { node, down, data }));
                }
                false if random.chance(300) => {
                    let (down, data) = (length, Data::Kept);
                    faults.push((at, Fault::Crash { node, down, data }));
                }
                false => away(0..setup.clients, node, (at, length), faults),
            }
        }
    }
}

/// These clients do not reach a node for so long.
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

/// An address leads to the server of another for a while, and perhaps that one's to its own: a server is behind two
/// addresses, or two servers have changed places.
fn mislead(setup: &Setup, random: &mut Random, first: Micros, faults: &mut Faults) {
    let node = random.index(setup.nodes);
    let other = (node + 1 + random.index(setup.nodes - 1)) % setup.nodes;
    // An operator who blesses nodes has looked which they are.
    let at = match setup.birth != Birth::Blessed && random.chance(300) {
        true => 0,
        false => random.between(first, setup.horizon),
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
            faults.push((at, Fault::Route { client, node, to }));
            let to = node;
            faults.push((until, Fault::Route { client, node, to }));
        }
    }
}

/// So few nodes that the others are a majority whatever becomes of their clocks.
fn few(setup: &Setup, random: &mut Random) -> Vec<usize> {
    let start = random.index(setup.nodes);
    let few = (start..start + setup.quorum.tolerated()).map(|node| node % setup.nodes);
    few.collect()
}

/// From when on no clock may jump that is set right when all is repaired: a node that kept a key then lets go of it
/// before its time, and agrees with the others again while the lease lasts.
const fn calm(setup: &Setup) -> Micros {
    setup.horizon - setup.max_ttl - setup.max_ttl / 20
}

/// Only few nodes lose data, so that a majority never forgets what it was told.
pub(crate) fn spare(setup: &Setup, random: &mut Random, faults: &mut Faults) {
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

/// All nodes but one lose their data, nearly at once, once all clients know what that one remembers.
pub(crate) fn lose_all_but(setup: &Setup, keeper: usize, random: &mut Random, faults: &mut Faults) {
    let at = random.between(900 * MS, calm(setup).max(SECOND));
    for node in (0..setup.nodes).filter(|node| *node != keeper) {
        let at = at + random.below(20 * MS);
        faults.push((at, Fault::Flush { node }));
    }
}

/// A clock is set forward so far that it agrees with no other.
fn jump(jumping: &[usize], at: Micros, random: &mut Random) -> Option<(Micros, Fault)> {
    let node = *jumping.get(random.index(jumping.len().max(1)))?;
    let by = random.between(2 * SECOND + 500 * MS, 6 * SECOND);
    let by = by.cast_signed();
    Some((at, Fault::Step { node, by }))
}

/// Everything that goes wrong later does so after the nap, in which some clients stand still; a clock may
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
        // Those who are awake acquire from a bare majority, to which the node belongs whose clock jumps.
        let others = (1..setup.nodes).map(|next| (jumps + next) % setup.nodes);
        for node in others.take(setup.quorum.tolerated()) {
            let at = nap.until - setup.max_ttl - 200 * MS;
            let length = setup.max_ttl + random.below(400 * MS);
            away(sleepers..setup.clients, node, (at, length), faults);
        }
    }
}

fn up_to(choices: &[u64], random: &mut Random) -> u64 {
    let most = random.pick(choices);
    random.between(0, most)
}
