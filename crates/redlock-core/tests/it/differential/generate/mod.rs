//! Random sequences of steps.

mod requests;
mod values;

use redlock_proto::LockMode;
use std::time::Duration;

use self::{
    requests::{Few, place},
    values::{horizon, number, ttl},
};
use crate::differential::{
    cast::{self, CLIENTS, JOBS, KEYS, OWNERS, SPACES},
    random::Random,
    step::{Ask, Number, Place, Since, Span, Step, When},
};

const MICRO: Duration = Duration::from_micros(1);
const MS: Duration = Duration::from_millis(1);

/// The step that counts of the time between two looks, in the spaces with short leases.
const QUARANTINE_STEP: Duration = Duration::from_millis(50);

/// Returns the steps of one sequence, which a server with these traits goes through.
pub(crate) fn sequence(random: &mut Random) -> Vec<Step> {
    let (others, named) = (5, SPACES - 5);
    let main = if random.percent(20) {
        others + random.index(named)
    } else {
        random.index(others)
    };
    // With one key or owner, operations of one call meet most often.
    let few = Few {
        keys: 1 + random.index(KEYS),
        owners: 1 + random.index(OWNERS),
        jobs: random.below(4).min(2) * 25,
        sets: random.pick(&[0, 10, 50]),
        shared: random.pick(&[0, 20, 60]),
        lines: random.pick(&[0, 30, 90]),
        slots: random.pick(&[0, 20, 80]),
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
            // Another space of the same prefix, or of any other.
            match main >= others {
                true => others + random.index(named),
                false => random.index(others),
            }
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
            80..82 => age(keyspace, random, &mut steps),
            82..83 if random.percent(10) => full_line(keyspace, random, &mut steps),
            82..83 => line(keyspace, random, &mut steps),
            83..84 => upgrade(&few, keyspace, random, &mut steps),
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

/// Returns a step that costs a server some time.
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

/// Adds an operator that vouches for the node.
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

/// Adds a quarantine, with enough looks at it for it to end.
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

/// Adds a reader that tries to upgrade its lease, and what becomes of its two leases.
fn upgrade(few: &Few, keyspace: usize, random: &mut Random, steps: &mut Vec<Step>) {
    let (reader, writer) = (random.index(OWNERS), random.index(OWNERS));
    let first = random.index(few.keys);
    let count = 1 + random.index(few.keys.min(2));
    let span = |mode| Span {
        first,
        count,
        mode,
        slots: None,
    };
    let shared = span(LockMode::Shared);
    let over = span(LockMode::Upgrade {
        of: cast::owner(reader).secret(),
    });
    let acquire = |keys, owner, ttl| Ask::Acquire {
        keys,
        owner,
        ttl,
        proposal: Number::Is(0),
        block: 1,
        wish: None,
        line: None,
    };
    let long = 10_000 * MS;
    let asks = vec![
        acquire(shared, reader, long),
        acquire(over, writer, random.pick(&[MS, 500 * MS, long])),
    ];
    steps.push(Step::Call { keyspace, asks });
    for _ in 0..random.below(6) {
        let other = random.index(OWNERS);
        let (owner, keys) = random.pick(&[
            (reader, shared),
            (writer, over),
            (other, shared),
            (writer, shared),
        ]);
        let ask = match random.below(5) {
            0 => acquire(keys, owner, ttl(random)),
            1 => Ask::Release { keys, owner },
            2 => Ask::Heal {
                keys,
                owner,
                ttl: ttl(random),
                counter: number(random),
            },
            3 => few.ask(random),
            _ => Ask::Extend {
                keys,
                owner,
                ttl: ttl(random),
                write_back: None,
            },
        };
        let asks = vec![ask];
        steps.push(Step::Call { keyspace, asks });
    }
    steps.push(Step::Look);
}

/// Adds callers that wait in line for a key, and what has the node give it to them.
fn line(keyspace: usize, random: &mut Random, steps: &mut Vec<Step>) {
    vouch(keyspace, steps);
    let keys = Span {
        first: random.index(KEYS),
        count: 1,
        mode: LockMode::Exclusive,
        slots: None,
    };
    let ask = |random: &mut Random| {
        let owner = random.index(OWNERS);
        match random.below(5) {
            0..3 => Ask::Acquire {
                keys,
                owner,
                ttl: ttl(random),
                proposal: number(random),
                block: 1 + u32::try_from(random.below(3)).expect("it is small"),
                wish: None,
                line: Some(place(random)),
            },
            3 => Ask::Release { keys, owner },
            _ => Ask::Tombstone {
                keys,
                owner,
                ttl: ttl(random),
            },
        }
    };
    for _ in 0..2 + random.below(8) {
        // The script does several for one key, and a transaction may do a single one.
        let asks = (0..1 + random.below(4)).map(|_| ask(random)).collect();
        steps.push(Step::Call { keyspace, asks });
        if random.percent(20) {
            steps.push(clock(random));
        }
    }
    steps.push(Step::Look);
}

/// Adds callers that fill the line for a key, whose clients may be gone when more come, and what ends the lease.
fn full_line(keyspace: usize, random: &mut Random, steps: &mut Vec<Step>) {
    vouch(keyspace, steps);
    let keys = Span {
        first: random.index(KEYS),
        count: 1,
        mode: LockMode::Exclusive,
        slots: None,
    };
    let acquire = |owner, line| Ask::Acquire {
        keys,
        owner,
        ttl: 10_000 * MS,
        proposal: Number::Is(0),
        block: 1,
        wish: None,
        line,
    };
    let holder = random.index(OWNERS);
    let mut asks: Vec<Ask> = (0..CLIENTS).map(|client| Ask::Sign { client }).collect();
    asks.push(acquire(holder, None));
    let last = 64 + random.below(2);
    for number in 0..last + 2 {
        let line = Place {
            came: 4 + number,
            stay: 10_000 * MS,
            signs: random.percent(95),
            ..place(random)
        };
        let owner = OWNERS + usize::try_from(number).expect("it is small");
        asks.push(acquire(owner, Some(line)));
    }
    let more = asks.split_off(asks.len() - 2);
    for asks in asks.chunks(16) {
        let asks = asks.to_vec();
        steps.push(Step::Call { keyspace, asks });
    }
    if random.percent(50) {
        steps.push(Step::Forward(3_001 * MS));
    }
    steps.push(Step::Call {
        keyspace,
        asks: more,
    });
    steps.push(Step::MayPublish(random.percent(50)));
    let owner = holder;
    let asks = vec![Ask::Release { keys, owner }];
    steps.push(Step::Call { keyspace, asks });
    steps.push(Step::MayPublish(true));
    steps.push(Step::Look);
}

/// Adds one run of a job after the other, until the oldest are forgotten.
fn many_runs(keyspace: usize, random: &mut Random, steps: &mut Vec<Step>) {
    let (job, owner, ttl) = (random.index(JOBS), random.index(OWNERS), 30_000 * MS);
    let keys = Span {
        first: job,
        count: 1,
        mode: LockMode::Exclusive,
        slots: None,
    };
    let acquire = Ask::Acquire {
        keys,
        owner,
        ttl,
        proposal: number(random),
        block: 1,
        wish: None,
        line: None,
    };
    let commit = |offset, text| Ask::Commit {
        job,
        key: job,
        owner,
        ttl,
        token: Number::Seen {
            shard: cast::shard_of(job),
            offset: 1,
        },
        tick: When::Watermark { offset },
        text,
    };
    let asks = vec![Ask::Release { keys, owner }, acquire];
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

/// Returns a claim of a tick from the time that a node may have forgotten, or just after.
fn old_claim(random: &mut Random) -> Ask {
    let early = random.pick(&[0_u32, 1, 100]);
    Ask::Claim {
        job: random.index(JOBS),
        key: random.index(KEYS),
        owner: random.index(OWNERS),
        ttl: ttl(random),
        proposal: number(random),
        // The last tick that may have been claimed, and those around it.
        tick: When::Horizon {
            offset: i64::from(early) + random.pick(&[-1_000, -1, 0, 0, 1]),
        },
        early: early * MS,
        start_within: 4_000_000 * MS,
    }
}
