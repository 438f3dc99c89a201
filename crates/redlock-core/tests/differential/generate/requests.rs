//! Single requests, with what they are about chosen out of a few.

use std::time::Duration;

use super::{
    MS,
    values::{edge, horizon, number, since, ttl, when},
};
use crate::{
    cast::{JOBS, KEYS},
    random::Random,
    step::{Ask, Number},
};

/// Out of how many a sequence chooses.
pub(super) struct Few {
    pub(super) keys: usize,
    pub(super) owners: usize,
    /// How many in a hundred requests are about jobs.
    pub(super) jobs: u64,
    pub(super) shards: usize,
    /// Whether counters come near the end of their range.
    pub(super) edges: bool,
}

impl Few {
    /// What clients ask for all the time: to acquire, to extend and to release, mostly each key once.
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
            let (owner, ttl) = (random.index(self.owners), ttl(random));
            asks.push(match random.below(5) {
                0..3 => Ask::Acquire {
                    key,
                    owner,
                    ttl,
                    shard: random.index(self.shards),
                    proposal: self.number(random),
                    block: 1 + u32::try_from(random.below(3)).expect("it is small"),
                },
                3 => Ask::Extend {
                    key,
                    owner,
                    ttl,
                    write_back: None,
                },
                _ => Ask::Release { key, owner },
            });
        }
        asks
    }

    pub(super) fn ask(&self, random: &mut Random) -> Ask {
        if random.percent(self.jobs) {
            return self.ask_about_a_job(random);
        }
        let key = random.index(self.keys);
        let owner = random.index(self.owners);
        let shard = random.index(self.shards);
        let ttl = ttl(random);
        let block = match random.below(3) {
            0 => 1 + u32::try_from(random.below(20)).expect("it is small"),
            _ => 1,
        };
        match random.below(100) {
            0..38 => Ask::Acquire {
                key,
                owner,
                ttl,
                shard,
                proposal: self.number(random),
                block,
            },
            38..48 => Ask::Extend {
                key,
                owner,
                ttl,
                write_back: None,
            },
            48..58 => Ask::Extend {
                key,
                owner,
                ttl,
                write_back: Some((shard, self.number(random))),
            },
            58..68 => Ask::Heal {
                key,
                owner,
                ttl,
                shard,
                counter: self.number(random),
            },
            68..86 => Ask::Release { key, owner },
            86..89 => Ask::Tombstone { key, owner, ttl },
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
        let shard = random.index(self.shards);
        let text = random.pick(&["", "claimed", "ended well", "1 2 3"]);
        match random.below(100) {
            0..45 => Ask::Claim {
                job,
                key,
                owner,
                ttl: ttl(random),
                shard,
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
                shard,
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
