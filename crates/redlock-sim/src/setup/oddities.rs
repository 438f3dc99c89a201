//! The oddities of a world: each in a few worlds only, some of them together.
//!
//! They are drawn from a generator of their own, so that a world without them is the same as if there were none.

use std::num::NonZeroUsize;

use redlock_proto::Quorum;

use super::{Birth, MS, Micros, Net, SECOND, Setup, Storm};
use crate::{Plan, random::Random};

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
    /// How often the clock of a node jumps by more than a second; the clocks of a majority never do.
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
                let from = random.between(300 * MS, setup.calm());
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
}

impl Setup {
    /// Takes few nodes with little data, and clients whose wall clocks are far apart: order rests on the floors that
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
        self.horizon = 2 * self.stranding() + SECOND;
    }

    /// Takes more clients and keys than usual, which are asked for less often.
    fn crowd(&mut self, random: &mut Random) {
        self.clients = random.index(3) + 6;
        let keys = random.index(3) + 4;
        self.set_keys(keys);
        self.think = (4 * self.think).max(120 * MS);
    }

    /// Returns for how long nodes are out of reach: longer than it takes to do without them.
    pub(crate) fn stranding(&self) -> Micros {
        self.quarantine() + 2 * SECOND
    }

    /// Returns from when on no clock may jump that is set right when all is repaired: a node that kept a key then lets
    /// go of it before its time, and agrees with the others again while the lease lasts.
    pub(crate) const fn calm(&self) -> Micros {
        self.horizon - self.max_ttl - self.max_ttl / 20
    }
}

fn up_to(choices: &[u64], random: &mut Random) -> u64 {
    let most = random.pick(choices);
    random.between(0, most)
}
