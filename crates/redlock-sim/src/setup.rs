//! What a seed makes of a plan: how many there are of everything, and how bad it will be.

use std::{num::NonZeroUsize, ops::Range, time::Duration};

use redlock_proto::{NodeKey, Quarantine, Quorum, RetryPolicy, Space};

use crate::{Plan, Rules, oddities::Oddities, random::Random};

/// Microseconds: the world counts in them, and does so too often for anything heavier.
pub(crate) type Micros = u64;

pub(crate) const MS: Micros = 1_000;
pub(crate) const SECOND: Micros = 1_000_000;

/// By how much the rate of a clock may be off, as everybody is told.
pub(crate) const RATE_ERROR: f64 = 0.01;

/// A world before anything happens in it.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) plan: Plan,
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
    pub(crate) keys: Vec<NodeKey>,
    pub(crate) quorum: Quorum,
    pub(crate) space: Space,
    pub(crate) retry: RetryPolicy,
    pub(crate) max_ttl: Micros,
    pub(crate) ttls: [Micros; 3],
    pub(crate) node_timeout: Micros,
    pub(crate) link: LinkLimits,
    pub(crate) net: Net,
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
    /// How long clients rest between acquisitions at most.
    pub(crate) think: Micros,
    /// When everything is repaired.
    pub(crate) horizon: Micros,
    /// The ticks of what is locked, if that are jobs.
    pub(crate) jobs: Option<Jobs>,
    /// The keys of what nodes remember of each.
    pub(crate) job_keys: Vec<NodeKey>,
}

/// Clients that were told something else than the others about how nodes may forget.
#[derive(Clone, Debug)]
pub(crate) struct Strangers {
    /// The first of them; those after it are strangers too.
    first: usize,
    space: Space,
    max_ttl: Micros,
    /// Whether they are the next deployment: the others end one after the other, and nobody takes their place.
    replace: bool,
    /// The only node that keeps its data, if all others lose theirs once: it remembers the others' longer leases, and
    /// is never out of reach.
    pub(crate) keeper: Option<usize>,
}

/// Jobs that all have the same schedule; in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jobs {
    pub(crate) period: u64,
    pub(crate) early: u64,
    pub(crate) start_within: u64,
    /// By how much every other client thinks less of `early`.
    pub(crate) less: u64,
    /// Whether the wall clock of one client is an hour ahead.
    pub(crate) stray: bool,
    /// Whether every claimant wants runs to be settled that were cut short before a later tick starts.
    pub(crate) in_order: bool,
}

/// What a link to a node waits for, and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkLimits {
    pub(crate) lag_after: Micros,
    pub(crate) give_up_after: Micros,
    pub(crate) connect_timeout: Micros,
    pub(crate) most_calls: usize,
}

/// What the network does without being told to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Net {
    /// How many messages in a thousand are slow.
    pub(crate) slow: u64,
    pub(crate) slowest: Micros,
    /// How many answers in a thousand come twice.
    pub(crate) twice: u64,
    /// How many calls in a thousand a node refuses as a whole.
    pub(crate) refused: u64,
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

/// How many faults of each kind there are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Storm {
    pub(crate) crashes: u64,
    pub(crate) outages: u64,
    pub(crate) promotions: u64,
    pub(crate) flushes: u64,
    pub(crate) freezes: u64,
    pub(crate) cuts: u64,
    pub(crate) holes: u64,
    pub(crate) isolations: u64,
    pub(crate) pauses: u64,
    pub(crate) kills: u64,
    pub(crate) steps: u64,
}

impl Setup {
    pub(crate) fn draw(plan: Plan, random: &mut Random, odd: &mut Random) -> Self {
        let forgets = random.chance(150);
        let nodes = match forgets {
            true => random.pick(&[3, 3, 5]),
            false => random.pick(&[1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 5, 7]),
        };
        let keys = match forgets {
            true => 1,
            false => random.pick(&[1, 1, 1, 2, 3]),
        };
        let max_ttl = match forgets {
            true => random.pick(&[300 * MS, 500 * MS]),
            false => random.pick(&[300 * MS, 500 * MS, 1_000 * MS, 2_000 * MS]),
        };
        let trust = !plan.sets_clocks() && !forgets && random.chance(80);
        let rolls = forgets && random.chance(600);
        let node_timeout = random.pick(&[20 * MS, 50 * MS, 150 * MS]);
        let lag_after = 2 * node_timeout;
        let mut setup = Self {
            plan,
            nodes,
            clients: random.index(4) + 2,
            keys: (0..keys).map(|key| KEYS[key].into()).collect(),
            quorum: Quorum::of(NonZeroUsize::new(nodes).unwrap_or(NonZeroUsize::MIN)),
            space: space(max_ttl, trust, RATE_ERROR),
            retry: RetryPolicy::new(SHORTEST_DELAY, LONGEST_DELAY)
                .expect("it is neither 0 nor longer than the longest"),
            max_ttl,
            ttls: ttls(max_ttl),
            node_timeout,
            link: LinkLimits {
                lag_after,
                give_up_after: (4 * lag_after).max(random.pick(&[300 * MS, 800 * MS])),
                connect_timeout: 100 * MS,
                most_calls: random.pick(&[2, 8, 32]),
            },
            net: Net::draw(random),
            lag: random.pick(&[0, 0, 20, 50]),
            rate: random.pick(&[0, 100, 5_000, 10_000, 10_000]),
            skew: match forgets {
                true => 30 * SECOND,
                false => random.pick(&[0, 10 * MS, 10 * MS, 200 * MS, 200 * MS, 30 * SECOND]),
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
            think: match rolls {
                // Whoever acquires the key tells a node what it has forgotten.
                true => 3 * SECOND,
                false => random.pick(&[5 * MS, 30 * MS, 150 * MS]),
            },
            horizon: match rolls {
                true => (nodes as u64 + 1) * turn(max_ttl),
                false => 2 * SECOND + 3 * max_ttl / 2,
            },
            jobs: None,
            job_keys: Vec::new(),
        };
        setup.odd = Oddities::draw(&mut setup, odd);
        if plan == Plan::Strangers {
            setup.draw_strangers(odd);
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

    /// What is locked are jobs, and wall clocks differ by less than it takes for a tick to come too early or too
    /// late, but for one perhaps.
    fn draw_jobs(&mut self, random: &mut Random, odd: &mut Random) {
        self.skew = random.pick(&[0, 10 * MS, 200 * MS]);
        self.jobs = Some(Jobs {
            period: random.pick(&[20, 60, 150]),
            early: random.pick(&[400, 1_000]),
            start_within: random.pick(&[900, 2_000, 60_000]),
            stray: random.chance(200),
            less: match self.plan.sets_all_clocks() {
                true => random.pick(&[0, 0, self.max_ttl / MS / 2]),
                false => 0,
            },
            in_order: self.plan != Plan::TicksBack && odd.chance(300),
        });
        let jobs = JOBS.iter().take(self.keys.len());
        self.job_keys = jobs.map(|job| (*job).into()).collect();
    }

    /// Some clients are told something else than the others, and a single wrong clock is all that a majority bears.
    fn draw_strangers(&mut self, random: &mut Random) {
        let max_ttl = random.pick(&[self.max_ttl / 4, self.max_ttl, 4 * self.max_ttl]);
        let is_alike = max_ttl == self.max_ttl;
        let loses = self.nodes > 1 && random.chance(250);
        let (max_ttl, is_alike) = match loses {
            true => (self.max_ttl / 4, false),
            false => (max_ttl, is_alike),
        };
        // They differ in one thing at least.
        let rate_error = match is_alike && random.chance(500) {
            true => random.pick(&[RATE_ERROR / 2.0, 2.0 * RATE_ERROR]),
            false => RATE_ERROR,
        };
        let keeper = loses.then(|| random.index(self.nodes));
        if loses {
            self.set_max_ttl(self.max_ttl, false);
            self.storm = Storm::default();
            (self.net.slow, self.net.refused) = (0, 0);
            self.odd = Oddities::default();
            self.rolls = false;
        }
        let trust = self.trust ^ (is_alike && rate_error == RATE_ERROR);
        self.clients = self.clients.max(3);
        self.stray = false;
        self.strangers = Some(Strangers {
            first: self.clients - 1 - random.index(2),
            space: space(max_ttl, trust, rate_error),
            max_ttl,
            replace: random.chance(300),
            keeper,
        });
    }

    fn strangers_with(&self, client: usize) -> Option<&Strangers> {
        let strangers = self.strangers.as_ref();
        strangers.filter(|strangers| client >= strangers.first)
    }

    /// Whether a client was told something else than the others.
    pub(crate) fn is_stranger(&self, client: usize) -> bool {
        self.strangers_with(client).is_some()
    }

    /// The clients that end while strangers take their place, if they do.
    pub(crate) fn replaced(&self) -> Range<usize> {
        let strangers = self.strangers.as_ref();
        0..strangers.map_or(0, |strangers| match strangers.replace {
            true => strangers.first,
            false => 0,
        })
    }

    /// Whether strangers use longer leases than the others.
    pub(crate) fn are_strangers_longer(&self) -> bool {
        let strangers = self.strangers.as_ref();
        strangers.is_some_and(|strangers| strangers.max_ttl > self.max_ttl)
    }

    /// What a client is told of the nodes.
    pub(crate) fn space_of(&self, client: usize) -> &Space {
        let strangers = self.strangers_with(client);
        strangers.map_or(&self.space, |strangers| &strangers.space)
    }

    /// How long nodes keep keys at most, as a client is told.
    pub(crate) fn max_ttl_of(&self, client: usize) -> Micros {
        let strangers = self.strangers_with(client);
        strangers.map_or(self.max_ttl, |strangers| strangers.max_ttl)
    }

    /// Changes how long nodes keep keys at most.
    pub(crate) fn set_max_ttl(&mut self, max_ttl: Micros, trust: bool) {
        self.max_ttl = max_ttl;
        self.ttls = ttls(max_ttl);
        self.trust = trust;
        self.space = space(max_ttl, trust, RATE_ERROR);
    }

    /// Changes how many keys there are.
    pub(crate) fn set_keys(&mut self, keys: usize) {
        self.keys = KEYS[..keys].iter().map(|key| (*key).into()).collect();
    }

    /// By how much a client's wall clock is ahead besides, in microseconds.
    pub(crate) fn ahead(&self, client: usize) -> Micros {
        match self.jobs {
            Some(jobs) if jobs.stray && client == 0 => 3_600 * SECOND,
            _ => 0,
        }
    }

    /// By how much the clock of a node may be set back in all: no tick that it may have forgotten seems later than
    /// its horizon then.
    pub(crate) fn set_back(&self) -> Micros {
        let less = self.jobs.map_or(0, |jobs| jobs.less * MS);
        micros(self.space.quarantine().length()).saturating_sub(less)
    }

    /// What its history is judged by.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            max_ttl: Duration::from_micros(self.max_ttl),
            // Half of the shortest delay, by a clock that may be fast.
            pause: SHORTEST_DELAY.mul_f64(0.5 - RATE_ERROR),
            skew: Duration::from_micros(match self.plan.sets_all_clocks() {
                true => u64::MAX / 2,
                false => self.skew + self.ahead(0),
            }),
            tolerated: self.quorum.tolerated(),
            clocks_step: self.plan.sets_clocks(),
        }
    }

    /// How long after one node the next has its turn to lose data.
    pub(crate) const fn turn(&self) -> Micros {
        turn(self.max_ttl)
    }

    /// How long a quarantine takes, with the slowest clock and a look every now and then.
    pub(crate) fn quarantine(&self) -> Micros {
        let length = micros(self.space.quarantine().length());
        length + length / 50 + 100 * MS
    }
}

impl Net {
    fn draw(random: &mut Random) -> Self {
        let (slow, slowest) = random.pick(&[
            (0, 0),
            (20, 20 * MS),
            (10, 100 * MS),
            (10, 400 * MS),
            (2, 3 * SECOND),
        ]);
        Self {
            slow,
            slowest,
            twice: random.pick(&[0, 0, 50]),
            refused: random.pick(&[0, 0, 0, 20]),
        }
    }
}

impl Storm {
    fn draw(plan: Plan, random: &mut Random) -> Self {
        let mut up_to = |choices: &[u64]| {
            let most = random.pick(choices);
            random.between(0, most)
        };
        Self {
            crashes: up_to(&[0, 2, 4, 8]),
            outages: up_to(&[0, 0, 0, 0, 1, 2]),
            promotions: up_to(&[0, 0, 2]),
            flushes: up_to(&[0, 0, 2]),
            freezes: up_to(&[0, 2, 5]),
            cuts: up_to(&[0, 3, 10, 20]),
            holes: up_to(&[0, 2, 6]),
            isolations: up_to(&[0, 1, 3]),
            pauses: up_to(&[0, 3, 8]),
            kills: up_to(&[0, 0, 1, 2]),
            steps: match plan {
                Plan::ClockSteps => 1 + up_to(&[1, 3, 6]),
                // They are drawn where they are put in order.
                Plan::Default
                | Plan::Rollback
                | Plan::Strangers
                | Plan::Ticks
                | Plan::TicksClocks
                | Plan::TicksBack => 0,
            },
        }
    }
}

impl Storm {
    /// Nodes lose data one after the other, and clients what they have seen.
    fn of_losses(plan: Plan, random: &mut Random) -> Self {
        Self {
            crashes: random.between(4, 10),
            kills: random.between(2, 6),
            outages: random.below(2),
            ..Self::draw(plan, random)
        }
    }
}

/// How long leases last that are asked for.
const fn ttls(max_ttl: Micros) -> [Micros; 3] {
    [max_ttl, max_ttl / 2, max_ttl / 5]
}

fn space(max_ttl: Micros, trust: bool, rate_error: f64) -> Space {
    let quarantine = Quarantine::new(Duration::from_micros(max_ttl), rate_error);
    let quarantine = match trust {
        true => quarantine.trusting_persistence(),
        false => quarantine,
    };
    Space::new("{sim}", quarantine)
}

/// A quarantine, and the time to be told a floor.
const fn turn(max_ttl: Micros) -> Micros {
    max_ttl + 400 * MS
}

/// Whole microseconds of a duration.
pub(crate) fn micros(duration: Duration) -> Micros {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Between two attempts of a client on behalf of one waiter.
const SHORTEST_DELAY: Duration = Duration::from_millis(20);
const LONGEST_DELAY: Duration = Duration::from_millis(600);

/// The most keys, and jobs, that a world has.
pub(crate) const MOST_KEYS: usize = 6;

const JOBS: [&str; MOST_KEYS] = [
    "{sim}:job:a",
    "{sim}:job:b",
    "{sim}:job:c",
    "{sim}:job:d",
    "{sim}:job:e",
    "{sim}:job:f",
];
const KEYS: [&str; MOST_KEYS] = [
    "{sim}:lock:a",
    "{sim}:lock:b",
    "{sim}:lock:c",
    "{sim}:lock:d",
    "{sim}:lock:e",
    "{sim}:lock:f",
];
