//! P12: what a lease on several keys costs, against a plain client's locks on them, one after the other.

use std::time::Duration;

use redlock_core::{Redlock, ResourceKey};
use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use tokio::time::Instant;

use super::{Bench, each};
use crate::{
    contender::{Locks as _, RedisRs},
    failed::{Failed, Result},
};

pub(super) fn p12(bench: &mut Bench) -> Result<()> {
    let rounds = bench.scale.rounds.min(MOST_ROUNDS);
    let title =
        format!("a pair on several keys at once, {NODES} nodes; {rounds} rounds of {PAIRS}");
    bench.report.begin("P12", &title);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rounds = runtime.block_on(measure(rounds))?;
    let rows = [
        ("1 key", 0),
        (LOOP_OF_2, 1),
        ("2 keys", 1),
        (LOOP_OF_16, 3),
        ("16 keys", 3),
    ];
    each(&mut bench.report, "P12", rows, &rounds);
    Ok(())
}

async fn measure(rounds: usize) -> Result<Vec<[f64; 5]>> {
    let binary = ServerBinary::find()?;
    let servers = ServerSet::start(&binary, NODES, &ServerOptions::default())?;
    let redlock = Redlock::builder().nodes(servers.urls()).build().await?;
    // They were started for this, so they have forgotten nothing.
    redlock.dangerous_bless().await;
    let plain = RedisRs::connect(&servers.urls()).await?;
    let mut used = 0;
    let mut figures = Vec::new();
    // The first round warms up.
    for number in 0..=rounds {
        let figure = round(&redlock, &plain, &mut used).await?;
        if number > 0 {
            figures.push(figure);
        }
    }
    Ok(figures)
}

/// Measures the microseconds of each line, one pair of each in turn: what disturbs one disturbs all.
async fn round(redlock: &Redlock, plain: &RedisRs, used: &mut u64) -> Result<[f64; 5]> {
    let mut samples: [Vec<Duration>; 5] = Default::default();
    for _ in 0..PAIRS {
        for (line, samples) in samples.iter_mut().enumerate() {
            // A release is over once a majority has done it: before each stands the same, so all wait alike for the rest.
            pair(redlock, 1, used).await?;
            samples.push(match line {
                0 => pair(redlock, 1, used).await?,
                1 => one_by_one(plain, 2, used).await?,
                2 => pair(redlock, 2, used).await?,
                3 => one_by_one(plain, 16, used).await?,
                _ => pair(redlock, 16, used).await?,
            });
        }
    }
    Ok(samples.map(|mut samples| {
        samples.sort_unstable();
        samples[samples.len() / 2].as_secs_f64() * 1e6
    }))
}

/// Measures how long a plain client takes for so many keys, one after the other, each of which is used once.
async fn one_by_one(plain: &RedisRs, size: u64, used: &mut u64) -> Result<Duration> {
    let keys: Vec<String> = (*used..*used + size)
        .map(|key| format!("account:{key}"))
        .collect();
    *used += size;
    let start = Instant::now();
    let mut all = Vec::new();
    for key in &keys {
        let held = plain.acquire(key, TTL).await;
        all.push(held.ok_or_else(|| Failed("a free key was refused".to_owned()))?);
    }
    for held in all {
        plain.release(held).await;
    }
    Ok(start.elapsed())
}

/// Measures how long so many keys take, each of which is used once.
async fn pair(redlock: &Redlock, size: u64, used: &mut u64) -> Result<Duration> {
    let keys = (*used..*used + size).map(|key| ResourceKey::new("account", key));
    let keys: Vec<ResourceKey> = keys
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| Failed(format!("{error}")))?;
    *used += size;
    let start = Instant::now();
    let guard = redlock.acquire_all(keys).await?;
    guard.release().await?;
    Ok(start.elapsed())
}

const LOOP_OF_2: &str = "a plain client, 2 keys one after the other";
const LOOP_OF_16: &str = "a plain client, 16 keys one after the other";

const TTL: Duration = Duration::from_secs(30);
const NODES: usize = 5;
const MOST_ROUNDS: usize = 21;
const PAIRS: usize = 101;
