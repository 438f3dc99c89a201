//! The world that a seed makes of a plan: how many there are of everything, and how bad it will be.

mod jobs;
mod link;
mod named;
mod oddities;
mod one_gone;
mod slices;
mod storm;
mod strangers;
mod time;

use std::{num::NonZeroUsize, time::Duration};

use redlock_proto::{
    FanOut, KeySet, Keyspace, LinkConfig, NodeKey, Quarantine, Quorum, RetryPolicy, Series,
};

pub(crate) use self::{
    jobs::{Jobs, RECORD},
    named::{INFORMANTS, Named},
    oddities::{Nap, Oddities},
    slices::Slices,
    storm::{Net, Storm},
    strangers::Strangers,
    time::{MS, Micros, SECOND, micros},
};
use crate::{Plan, Rules, random::Random};

/// By how much the rate of a clock may be off, as everybody is told.
pub(crate) const RATE_ERROR: f64 = 0.01;

/// A world before anything happens in it.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) plan: Plan,
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
    pub(crate) keys: Vec<NodeKey>,
    /// Which of the keys are locked together by some, besides each by itself.
    pub(crate) sets: Vec<Vec<usize>>,
    pub(crate) quorum: Quorum,
    pub(crate) keyspace: Keyspace,
    pub(crate) retry: RetryPolicy,
    pub(crate) max_ttl: Micros,
    pub(crate) ttls: [Micros; 3],
    pub(crate) node_timeout: Micros,
    pub(crate) link: LinkConfig,
    pub(crate) net: Net,
    /// How many nodes the acquires of each other client ask at once.
    pub(crate) fan_outs: [FanOut; 2],
    /// How many requests may wait to be sent to a node before new attempts wait.
    pub(crate) most_unsent: usize,
    /// How many in a thousand messages a client is told late.
    pub(crate) lag: u64,
    /// By how many millionths clocks are fast or slow at most.
    pub(crate) rate: u64,
    /// By how much the wall clocks of clients differ at most.
    pub(crate) skew: Micros,
    /// By how much the wall clocks of nodes differ at most.
    pub(crate) spread: Micros,
    /// Whether one node's clock is off by far.
    pub(crate) stray: bool,
    pub(crate) birth: Birth,
    pub(crate) trust: bool,
    /// Whether nodes lose data and clients are replaced over and over, while wall clocks are far apart: order
    /// rests on the floors that nodes are told.
    pub(crate) forgets: bool,
    /// Whether nodes lose data in turn, each once the one before votes again, while the key is seldom acquired.
    pub(crate) rolls: bool,
    pub(crate) storm: Storm,
    pub(crate) odd: Oddities,
    /// Clients that were told something else than the others.
    pub(crate) strangers: Option<Strangers>,
    /// How clients get their CPU, if not all the time.
    pub(crate) slices: Option<Slices>,
    /// How the servers of nodes are named, if each node has two of them.
    pub(crate) named: Option<Named>,
    /// How long clients rest between acquisitions at most.
    pub(crate) think: Micros,
    /// When everything is repaired.
    pub(crate) horizon: Micros,
    /// The ticks of what is locked, if that are jobs.
    pub(crate) jobs: Option<Jobs>,
    /// The keys of what nodes remember of each.
    pub(crate) series: Vec<Series>,
}

/// What nodes know of their past when the world begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Birth {
    /// An operator vouches for them.
    Vouched,
    /// Nothing, so that their first quarantine must end.
    Unknown,
    /// Nothing, and an operator blesses them once they are connected.
    Blessed,
}

impl Setup {
    pub(crate) fn draw(plan: Plan, random: &mut Random, odd: &mut Random) -> Self {
        let forgets = random.chance(150);
        let nodes = if forgets {
            random.pick(&[3, 3, 5])
        } else {
            random.pick(&[1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 5, 7])
        };
        let keys = if forgets {
            1
        } else {
            random.pick(&[1, 1, 2, 3])
        };
        let max_ttl = if forgets {
            random.pick(&[300 * MS, 500 * MS])
        } else {
            random.pick(&[300 * MS, 500 * MS, 1_000 * MS, 2_000 * MS])
        };
        let trust = !plan.sets_clocks() && !forgets && random.chance(80);
        let rolls = forgets && random.chance(600);
        let node_timeout = random.pick(&[20 * MS, 50 * MS, 150 * MS]);
        let mut setup = Self {
            plan,
            nodes,
            clients: random.index(4) + 2,
            keys: (0..keys).map(|key| KEYS[key].into()).collect(),
            sets: Vec::new(),
            quorum: Quorum::of(NonZeroUsize::new(nodes).unwrap_or(NonZeroUsize::MIN)),
            keyspace: keyspace(max_ttl, trust, RATE_ERROR),
            retry: RetryPolicy::new(SHORTEST_DELAY, LONGEST_DELAY)
                .expect("it is neither 0 nor longer than the longest"),
            max_ttl,
            ttls: ttls(max_ttl),
            node_timeout,
            link: link::draw(node_timeout, random),
            net: Net::draw(random),
            fan_outs: [FanOut::All; 2],
            most_unsent: 1024,
            lag: random.pick(&[0, 0, 20, 50]),
            rate: random.pick(&[0, 100, 5_000, 10_000, 10_000]),
            skew: if forgets {
                30 * SECOND
            } else {
                random.pick(&[0, 10 * MS, 10 * MS, 200 * MS, 200 * MS, 30 * SECOND])
            },
            spread: random.pick(&[0, 50 * MS, 400 * MS]),
            stray: nodes > 2 && random.chance(100),
            birth: match random.below(6) {
                0 if !forgets => Birth::Blessed,
                1 if !forgets => Birth::Unknown,
                _ => Birth::Vouched,
            },
            trust,
            forgets,
            rolls,
            storm: match (forgets, rolls) {
                (true, false) => Storm::of_losses(plan, random),
                (true, true) => Storm {
                    crashes: 0,
                    outages: 0,
                    kills: 0,
                    ..Storm::draw(plan, random)
                },
                (false, _) => Storm::draw(plan, random),
            },
            odd: Oddities::default(),
            strangers: None,
            slices: None,
            named: None,
            think: if rolls {
                // Each acquire of the key tells a node what it has forgotten.
                3 * SECOND
            } else {
                random.pick(&[5 * MS, 30 * MS, 150 * MS])
            },
            horizon: if rolls {
                (nodes as u64 + 1) * turn(max_ttl)
            } else {
                2 * SECOND + 3 * max_ttl / 2
            },
            jobs: None,
            series: Vec::new(),
        };
        setup.odd = Oddities::draw(&mut setup, odd);
        if plan == Plan::Strangers {
            setup.draw_strangers(odd);
        }
        if plan == Plan::OneGone {
            setup.lose_only_one(odd);
        }
        if plan == Plan::Slices {
            setup.draw_slices(odd);
        }
        if plan == Plan::Named {
            setup.draw_named(odd);
        }
        if plan == Plan::Sets || plan == Plan::Shared && odd.chance(500) {
            setup.draw_sets(odd);
        }
        if plan.has_jobs() {
            setup.draw_jobs(random, odd);
            if plan == Plan::TicksBack {
                // Clocks that were set back need as long to come to the same ticks again.
                setup.horizon += 4 * SECOND;
            }
        }
        setup
    }

    /// Changes how long nodes keep keys at most.
    pub(crate) fn set_max_ttl(&mut self, max_ttl: Micros, trust: bool) {
        self.max_ttl = max_ttl;
        self.ttls = ttls(max_ttl);
        self.trust = trust;
        self.keyspace = keyspace(max_ttl, trust, RATE_ERROR);
    }

    /// Changes how many keys there are.
    pub(crate) fn set_keys(&mut self, keys: usize) {
        self.keys = KEYS[..keys].iter().map(|key| (*key).into()).collect();
    }

    /// Returns how many servers there are.
    pub(crate) const fn servers(&self) -> usize {
        match self.named {
            Some(_) => 2 * self.nodes,
            None => self.nodes,
        }
    }

    /// Returns the node that a server is of.
    pub(crate) const fn node_of(&self, server: usize) -> usize {
        server % self.nodes
    }

    /// Returns how many things are locked: each key by itself, and then the sets.
    pub(crate) const fn locks(&self) -> usize {
        self.keys.len() + self.sets.len()
    }

    /// Returns the keys that are locked by the lock of this number.
    pub(crate) fn keys_of(&self, lock: usize) -> Vec<usize> {
        match lock.checked_sub(self.keys.len()) {
            Some(set) => self.sets[set].clone(),
            None => vec![lock],
        }
    }

    /// Returns the same as clients name them.
    pub(crate) fn names_of(&self, lock: usize) -> KeySet {
        let keys = self.keys_of(lock).into_iter();
        let names = keys.map(|key| self.keys[key].clone());
        KeySet::new(names).expect("a lock has a few keys")
    }

    /// Has some keys locked together.
    fn draw_sets(&mut self, random: &mut Random) {
        if self.forgets {
            self.set_keys(2);
            self.sets = vec![vec![0, 1]];
            return;
        }
        self.set_keys(3);
        let all = [vec![0, 1], vec![1, 2], vec![0, 2], vec![0, 1, 2]];
        self.sets = all.into_iter().filter(|_| random.chance(500)).collect();
        if self.sets.is_empty() {
            self.sets.push(vec![0, 1]);
        }
    }

    /// Returns what its history is judged by.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            max_ttl: Duration::from_micros(self.max_ttl),
            // Half of the shortest delay, by a clock that may be fast.
            pause: SHORTEST_DELAY.mul_f64(0.5 - RATE_ERROR),
            hurried: 1,
            skew: Duration::from_micros(if self.plan.sets_all_clocks() {
                u64::MAX / 2
            } else {
                self.skew + self.ahead(0)
            }),
            tolerated: self.quorum.tolerated(),
            clocks_step: self.plan.sets_clocks(),
            shares: self.plan == Plan::Shared,
        }
    }

    /// Returns how long after one node the next has its turn to lose data.
    pub(crate) const fn turn(&self) -> Micros {
        turn(self.max_ttl)
    }

    /// Returns how long a quarantine takes, with the slowest clock and a look every now and then.
    pub(crate) fn quarantine(&self) -> Micros {
        let length = micros(self.keyspace.quarantine().length());
        length + length / 50 + 100 * MS
    }
}

/// Returns how long leases last that are asked for.
const fn ttls(max_ttl: Micros) -> [Micros; 3] {
    [max_ttl, max_ttl / 2, max_ttl / 5]
}

fn keyspace(max_ttl: Micros, trust: bool, rate_error: f64) -> Keyspace {
    let quarantine = Quarantine::new(Duration::from_micros(max_ttl), rate_error);
    let quarantine = if trust {
        quarantine.trusting_persistence()
    } else {
        quarantine
    };
    Keyspace::new("{sim}", quarantine)
}

/// Returns the length of a quarantine, and of the time to be told a floor.
const fn turn(max_ttl: Micros) -> Micros {
    max_ttl + 400 * MS
}

/// Between two attempts of a client on behalf of one waiter.
const SHORTEST_DELAY: Duration = Duration::from_millis(20);
const LONGEST_DELAY: Duration = Duration::from_millis(600);

/// The most keys, and jobs, that a world has.
pub(crate) const MOST_KEYS: usize = 6;

const KEYS: [&str; MOST_KEYS] = [
    "{sim}:lock:a",
    "{sim}:lock:b",
    "{sim}:lock:c",
    "{sim}:lock:d",
    "{sim}:lock:e",
    "{sim}:lock:f",
];
