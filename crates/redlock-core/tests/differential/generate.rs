//! Random sequences of steps.

use std::time::Duration;

use crate::{
    cast::{JOBS, KEYS, OWNERS, SHARDS, SPACES},
    random::Random,
    step::{Ask, Number, Since, Step, When},
};

const MICRO: Duration = Duration::from_micros(1);
const MS: Duration = Duration::from_millis(1);

/// The step that counts of the time between two looks, in the spaces with short leases.
const QUARANTINE_STEP: Duration = Duration::from_millis(50);

/// The steps of one sequence, which a server with these traits goes through.
pub(crate) fn sequence(random: &mut Random) -> Vec<Step> {
    let main = random.index(SPACES);
    // With one key or owner, operations of one call meet most often.
    let few = Few {
        keys: 1 + random.index(KEYS),
        owners: 1 + random.index(OWNERS),
        jobs: random.below(4).min(2) * 20,
        shards: 1 + random.index(SHARDS),
        edges: random.percent(15),
    };
    let mut steps = Vec::new();
    if random.percent(70) {
        vouch(main, &mut steps);
    }
    while steps.len() < 100 {
        let keyspace = if random.percent(85) {
            main
        } else {
            random.index(SPACES)
        };
        match random.below(100) {
            0..30 => {
                let asks = few.leases(random);
                steps.push(Step::Call { keyspace, asks });
            }
            30..60 => {
                let asks = (0..length(random)).map(|_| few.ask(random)).collect();
                steps.push(Step::Call { keyspace, asks });
            }
            60..80 => steps.push(clock(random)),
            80..84 => age(keyspace, random, &mut steps),
            84..85 => many_runs(keyspace, random, &mut steps),
            85..86 => vouch(keyspace, &mut steps),
            86..87 => steps.push(if random.percent(50) {
                Step::Flush
            } else {
                Step::Adopt
            }),
            87..88 => steps.push(Step::FlushScripts),
            88..90 => steps.push(Step::DropLocks),
            90..91 => steps.push(rare(random)),
            91..93 => steps.push(Step::Expire),
            _ => steps.push(Step::Look),
        }
    }
    steps.push(Step::Look);
    steps
}

/// What costs a server some time.
fn rare(random: &mut Random) -> Step {
    match random.below(4) {
        0 => Step::Save,
        1 => Step::Reload,
        _ => Step::Restart,
    }
}

fn length(random: &mut Random) -> usize {
    match random.below(10) {
        0 => 0,
        1..5 => 1 + random.index(2),
        5..9 => 2 + random.index(6),
        _ => 8 + random.index(9),
    }
}

fn clock(random: &mut Random) -> Step {
    let to_end = [-1_001, -1_000, -1, 0, 1, 999, 1_000, 1_001];
    match random.below(10) {
        0..2 => Step::Forward(random.pick(&[MICRO, 999 * MICRO, MS, 2 * MS])),
        2..7 => Step::ToEnd {
            which: random.index(6),
            micros: random.pick(&to_end),
        },
        7..8 => {
            let steps = [MS, QUARANTINE_STEP / 2, QUARANTINE_STEP];
            Step::Forward(random.pick(&steps) + random.pick(&[MICRO, MS]))
        }
        8..9 => Step::Forward(Duration::from_millis(random.below(400_000))),
        _ => Step::Back(random.pick(&[MICRO, MS, 15 * MS, 300 * MS, 90_000 * MS])),
    }
}

/// An operator vouches for the node.
fn vouch(keyspace: usize, steps: &mut Vec<Step>) {
    let open = Ask::Open {
        floor: Number::Is(0),
        since: Since::Told { offset: 0 },
        horizon: None,
    };
    for asks in [vec![], vec![open]] {
        steps.push(Step::Call { keyspace, asks });
    }
}

/// A quarantine, looked at so often that it may end.
fn age(keyspace: usize, random: &mut Random, steps: &mut Vec<Step>) {
    for _ in 0..4 + random.below(8) {
        let asks = if random.percent(70) {
            vec![]
        } else {
            vec![Ask::Tick]
        };
        steps.push(Step::Call { keyspace, asks });
        let over = random.pick(&[Duration::ZERO, MS]);
        steps.push(Step::Forward(QUARANTINE_STEP - MS + over));
    }
    // No look counts for more than a step, so that it takes some to be there to the millisecond.
    for _ in 0..random.below(4) {
        let asks = vec![];
        steps.push(Step::Call { keyspace, asks });
        let micros = random.pick(&[-1_000, -1, 0, 1_000]);
        steps.push(Step::ToReady { keyspace, micros });
    }
    let open = Ask::Open {
        floor: number(random),
        since: Since::Told { offset: 0 },
        horizon: Some(horizon(random)),
    };
    let asks = vec![open];
    steps.push(Step::Call { keyspace, asks });
    if random.percent(40) {
        let asks = vec![old_claim(random)];
        steps.push(Step::Call { keyspace, asks });
    }
}

/// One run of a job after the other, until the oldest are forgotten.
fn many_runs(keyspace: usize, random: &mut Random, steps: &mut Vec<Step>) {
    let (job, owner, ttl) = (random.index(JOBS), random.index(OWNERS), 30_000 * MS);
    let acquire = Ask::Acquire {
        key: job,
        owner,
        ttl,
        shard: 0,
        proposal: number(random),
        block: 1,
    };
    let commit = |offset, text| Ask::Commit {
        job,
        key: job,
        owner,
        ttl,
        shard: 0,
        token: Number::Seen {
            shard: 0,
            offset: 1,
        },
        tick: When::Watermark { offset },
        text,
    };
    let asks = vec![Ask::Release { key: job, owner }, acquire];
    steps.push(Step::Call { keyspace, asks });
    for _ in 0..12 {
        let asks = vec![commit(1, "claimed")];
        steps.push(Step::Call { keyspace, asks });
    }
    // The same run, and another of the same tick and token.
    let asks = vec![commit(0, "claimed"), commit(0, "another")];
    steps.push(Step::Call { keyspace, asks });
    steps.push(Step::Look);
}

/// A claim of a tick from the time that a node may have forgotten, or just after.
fn old_claim(random: &mut Random) -> Ask {
    let early = random.pick(&[Duration::ZERO, MS, 100 * MS]);
    Ask::Claim {
        job: random.index(JOBS),
        key: random.index(KEYS),
        owner: random.index(OWNERS),
        ttl: ttl(random),
        shard: random.index(SHARDS),
        proposal: number(random),
        tick: When::Now {
            offset: random.pick(&[-1_000, -1, 0, 1, 99, 100, 101]),
        },
        early,
        start_within: 4_000_000 * MS,
    }
}

/// Out of how many a sequence chooses.
struct Few {
    keys: usize,
    owners: usize,
    /// How many in a hundred requests are about jobs.
    jobs: u64,
    shards: usize,
    /// Whether counters come near the end of their range.
    edges: bool,
}

impl Few {
    /// What clients ask for all the time: to acquire, to extend and to release, mostly each key once.
    fn leases(&self, random: &mut Random) -> Vec<Ask> {
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

    fn ask(&self, random: &mut Random) -> Ask {
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

fn ttl(random: &mut Random) -> Duration {
    match random.below(4) {
        0 => random.pick(&[Duration::ZERO, 999 * MICRO, MS, 2 * MS, 5 * MS]),
        1 => Duration::from_millis(1 + random.below(500)),
        // What is finer than a millisecond is cut off.
        2 => Duration::from_micros(1_000 + random.below(100_000)),
        _ => 30_000 * MS,
    }
}

fn number(random: &mut Random) -> Number {
    match random.below(8) {
        0 => Number::Is(0),
        1 => Number::Is(random.below(50)),
        // Microseconds of the wall clock, as clients propose them: sixteen digits.
        2 => Number::Is(1_795_177_631_000_000 + random.below(1_000_000)),
        _ => Number::Seen {
            shard: random.index(SHARDS),
            offset: random.pick(&[-2, -1, 0, 1, 2, 100]),
        },
    }
}

/// A counter near the greatest one, or near where doubles end.
fn edge(random: &mut Random) -> Number {
    const MAX: u64 = (1 << 53) - (1 << 20);
    let around = |middle: u64, random: &mut Random| Number::Is(middle - 3 + random.below(6));
    match random.below(8) {
        0..4 => around(MAX, random),
        4..6 => Number::Is(MAX - random.below(25)),
        6 => around(1 << 53, random),
        _ => Number::Is(random.pick(&[u64::MAX, 1 << 60, 1 << 63])),
    }
}

fn when(random: &mut Random) -> When {
    let near = [
        -501, -500, -101, -100, -2, -1, 0, 1, 2, 99, 100, 101, 2_000, 2_001,
    ];
    let offset = random.pick(&near);
    match random.below(10) {
        0..4 => When::Watermark {
            offset: offset.clamp(-2, 2),
        },
        4..6 => When::Since { offset },
        _ => When::Now { offset },
    }
}

/// Mostly what the clock shows; in milliseconds after that.
fn horizon(random: &mut Random) -> i64 {
    random.pick(&[0, 0, 0, 0, -1, 1, -1_000, 50_000])
}

fn since(random: &mut Random) -> Since {
    match random.below(10) {
        0..6 => Since::Told { offset: 0 },
        6..9 => Since::Told {
            offset: random.pick(&[-1_000, -1, 1, 1_000]),
        },
        _ => Since::Never,
    }
}
