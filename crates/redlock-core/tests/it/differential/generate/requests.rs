//! Single requests, with what they are about chosen out of a few.

use redlock_proto::LockMode;
use std::time::Duration;

use super::{
    MS,
    values::{edge, horizon, number, since, ttl, when},
};
use crate::differential::{
    cast::{self, CLIENTS, JOBS, KEYS, SUBSCRIBERS},
    random::Random,
    step::{Ask, Number, Place, Span},
};

/// Out of how many a sequence chooses.
pub(super) struct Few {
    pub(super) keys: usize,
    pub(super) owners: usize,
    /// How many in a hundred requests are about jobs.
    pub(super) jobs: u64,
    /// How many in a hundred requests about locks are about several keys.
    pub(super) sets: u64,
    /// How many in a hundred requests about locks share them, upgrade a shared lock, or wait for its readers.
    pub(super) shared: u64,
    /// How many in a hundred acquires may wait in line.
    pub(super) lines: u64,
    /// How many in a hundred requests about single locks are about one of several slots.
    pub(super) slots: u64,
    /// Whether counters come near the end of their range.
    pub(super) edges: bool,
}

impl Few {
    /// Returns what clients ask for all the time: to acquire, to extend and to release, mostly each key once.
    pub(super) fn leases(&self, random: &mut Random) -> Vec<Ask> {
        let first = random.index(KEYS);
        let count = 1 + random.index(KEYS);
        let mut asks = Vec::new();
        for number in 0..count {
            let key = if random.percent(95) {
                (first + number) % KEYS
            } else {
                random.index(KEYS)
            };
            // Mostly by functions, which lock one key.
            let count = if random.percent(97) { 1 } else { 2 };
            let keys = Span {
                first: key,
                count,
                mode: LockMode::Exclusive,
                slots: None,
            };
            let (owner, ttl) = (random.index(self.owners), ttl(random));
            asks.push(match random.below(5) {
                0..3 => Ask::Acquire {
                    keys,
                    owner,
                    ttl,
                    proposal: self.number(random),
                    block: 1 + u32::try_from(random.below(3)).expect("it is small"),
                    wish: None,
                    line: self.place(random),
                },
                3 => Ask::Extend {
                    keys,
                    owner,
                    ttl,
                    write_back: None,
                },
                _ => Ask::Release { keys, owner },
            });
        }
        asks
    }

    fn place(&self, random: &mut Random) -> Option<Place> {
        random.percent(self.lines).then(|| place(random))
    }

    pub(super) fn ask(&self, random: &mut Random) -> Ask {
        if random.percent(self.jobs) {
            return self.ask_about_a_job(random);
        }
        let count = if random.percent(self.sets) {
            1 + random.index(self.keys)
        } else {
            1
        };
        let first = random.index(self.keys);
        let mode = match random.below(3) {
            _ if !random.percent(self.shared) => LockMode::Exclusive,
            0 => LockMode::Upgrade {
                of: cast::owner(random.index(self.owners)).secret(),
            },
            _ => LockMode::Shared,
        };
        let is_slot = count == 1 && random.percent(self.slots);
        let slots = is_slot.then(|| random.pick(&[2, 2, 2, 64]));
        let keys = Span {
            first,
            count,
            mode,
            slots,
        };
        let owner = random.index(self.owners);
        let wish = random.percent(self.shared).then(|| ttl(random));
        let ttl = ttl(random);
        let block = match random.below(3) {
            0 => 1 + u32::try_from(random.below(20)).expect("it is small"),
            _ => 1,
        };
        match random.below(100) {
            0..38 => Ask::Acquire {
                keys,
                owner,
                ttl,
                proposal: self.number(random),
                block,
                wish,
                line: self.place(random),
            },
            38..48 => Ask::Extend {
                keys,
                owner,
                ttl,
                write_back: None,
            },
            48..52 => Ask::Sign {
                client: random.below(CLIENTS),
            },
            52..58 => Ask::Extend {
                keys,
                owner,
                ttl,
                write_back: Some(self.number(random)),
            },
            58..68 => Ask::Heal {
                keys,
                owner,
                ttl,
                counter: self.number(random),
            },
            68..86 => Ask::Release { keys, owner },
            86..89 => Ask::Tombstone { keys, owner, ttl },
            89..91 => Ask::Tick,
            91..93 => Ask::Inspect,
            93..96 => Ask::Survey,
            _ => Ask::Open {
                floor: self.number(random),
                since: since(random),
                horizon: if random.percent(50) {
                    Some(horizon(random))
                } else {
                    None
                },
            },
        }
    }

    fn ask_about_a_job(&self, random: &mut Random) -> Ask {
        let job = random.index(JOBS);
        // Mostly its own lock.
        let key = if random.percent(90) {
            job % self.keys
        } else {
            random.index(self.keys)
        };
        let owner = random.index(self.owners);
        let text = random.pick(&["", "claimed", "ended well", "1 2 3"]);
        match random.below(100) {
            0..45 => Ask::Claim {
                job,
                key,
                owner,
                ttl: ttl(random),
                proposal: self.number(random),
                tick: when(random),
                early: random.pick(&[Duration::ZERO, MS, 100 * MS, 2_000 * MS]),
                start_within: random.pick(&[Duration::ZERO, MS, 500 * MS, 4_000_000 * MS]),
            },
            45..75 => Ask::Commit {
                job,
                key,
                owner,
                ttl: ttl(random),
                token: self.number(random),
                tick: when(random),
                text,
            },
            75..83 => Ask::Record {
                job,
                which: random.index(3),
                offset: i64::from(random.percent(20)),
                text,
            },
            83..91 => Ask::Withdraw {
                job,
                which: random.index(3),
                offset: i64::from(random.percent(20)),
                text: random.percent(20).then_some(text),
            },
            _ => Ask::Read { job, key },
        }
    }

    fn number(&self, random: &mut Random) -> Number {
        if self.edges && random.percent(10) {
            edge(random)
        } else {
            number(random)
        }
    }
}

pub(super) fn place(random: &mut Random) -> Place {
    Place {
        // The last one has come since, by any clock.
        came: if random.percent(10) {
            u64::MAX / 10_000
        } else {
            random.below(4)
        },
        client: if random.percent(8) {
            SUBSCRIBERS
        } else {
            random.below(SUBSCRIBERS)
        },
        grant: if random.percent(10) {
            Duration::ZERO
        } else {
            ttl(random)
        },
        stay: ttl(random),
        signs: random.percent(20),
    }
}
