//! P12: what a lease on several keys costs, against one on a single key.

use std::time::Duration;

use redlock_core::{Redlock, ResourceKey};
use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use tokio::time::Instant;

use super::{Bench, each};
use crate::failed::{Failed, Result};

pub(super) fn p12(bench: &mut Bench) -> Result<()> {
    let rounds = bench.scale.rounds.min(MOST_ROUNDS);
    let title =
        format!("a pair on several keys at once, {NODES} nodes; {rounds} rounds of {PAIRS}");
    bench.report.begin("P12", &title);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rounds = runtime.block_on(measure(rounds))?;
    let rows = [("1 key", 0), ("2 keys", 0), ("4 keys", 0), ("16 keys", 0)];
    each(&mut bench.report, "P12", rows, &rounds);
    Ok(())
}

async fn measure(rounds: usize) -> Result<Vec<[f64; 4]>> {
    let binary = ServerBinary::find()?;
    let servers = ServerSet::start(&binary, NODES, &ServerOptions::default())?;
    let redlock = Redlock::builder().nodes(servers.urls()).build().await?;
    // They were started for this, so they have forgotten nothing.
    redlock.dangerous_bless().await;
    let mut used = 0;
    let mut figures = Vec::new();
    // The first round warms up.
    for number in 0..=rounds {
        let figure = round(&redlock, &mut used).await?;
        if number > 0 {
            figures.push(figure);
        }
    }
    Ok(figures)
}

/// Measures the microseconds of each size, one pair of each in turn: what disturbs one disturbs all.
async fn round(redlock: &Redlock, used: &mut u64) -> Result<[f64; 4]> {
    let mut samples: [Vec<Duration>; 4] = Default::default();
    for _ in 0..PAIRS {
        for (samples, size) in samples.iter_mut().zip([1, 2, 4, 16]) {
            // A release is over once a majority has done it: before each stands the same, so all wait alike for the rest.
            pair(redlock, 1, used).await?;
            samples.push(pair(redlock, size, used).await?);
        }
    }
    Ok(samples.map(|mut samples| {
        samples.sort_unstable();
        samples[samples.len() / 2].as_secs_f64() * 1e6
    }))
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

const NODES: usize = 5;
const MOST_ROUNDS: usize = 21;
const PAIRS: usize = 101;
