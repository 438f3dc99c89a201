//! P14: readers that share a key, against as many callers that have keys of their own; and how long a writer waits for them.

use std::{convert::Infallible, time::Duration};

use redlock_core::{AcquireOptions, Redlock, Wait};
use tokio::{task::JoinSet, time::Instant};

use super::{Bench, clients::start};
use crate::{
    failed::{Failed, Result},
    report::{OURS, Table, number},
    statistics::Summary,
};

pub(super) fn p14(bench: &mut Bench) -> Result<()> {
    let rounds = bench.scale.repeats.min(MOST_ROUNDS);
    let title = format!(
        "{CLIENTS} clients with {READERS} readers each, {NODES} nodes; {rounds} rounds: reads of {} ms, and a writer among \
         reads of {} ms",
        SHORT.as_millis(),
        LONG.as_millis()
    );
    bench.report.begin("P14", &title);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rounds = runtime.block_on(measure(rounds))?;
    let mut table = Table::new(["", "median", "min..max of the rounds"]);
    let column = |part: fn(&Round) -> f64| rounds.iter().map(part).collect::<Vec<_>>();
    let figures = [
        (SHARED, ALONE, column(|round| round.shared)),
        (WAIT, READ, column(|round| round.wait)),
    ];
    for (metric, against, figures) in &figures {
        let Summary { median, min, max } = Summary::of(figures);
        let range = format!("{}..{}", number(min), number(max));
        table.add([format!("{metric}, of {against}"), number(median), range]);
    }
    eprintln!("\n{}", table.text());
    for (metric, against, figures) in figures {
        bench.report.add("P14", OURS, metric, against, &figures);
    }
    Ok(())
}

/// What is measured in one round, each as a ratio.
struct Round {
    shared: f64,
    wait: f64,
}

async fn measure(rounds: usize) -> Result<Vec<Round>> {
    let (_servers, clients) = start(NODES, CLIENTS).await?;
    let mut measured = Vec::new();
    // The first round warms up.
    for number in 0..=rounds {
        let shared = reads(&clients, true).await?;
        let alone = reads(&clients, false).await?;
        let wait = longest_wait(&clients).await?;
        if number > 0 {
            measured.push(Round {
                shared: shared / alone,
                wait: wait.as_secs_f64() / LONG.as_secs_f64(),
            });
        }
    }
    Ok(measured)
}

/// Returns how many holds end in a second: of readers of one key, or of as many callers of which each has its own key alone.
async fn reads(clients: &[Redlock], are_shared: bool) -> Result<f64> {
    let mut readers = JoinSet::new();
    let ends = Instant::now() + SAMPLE;
    for reader in 0..CLIENTS * READERS {
        let redlock = clients[reader % CLIENTS].clone();
        readers.spawn(async move {
            let options = AcquireOptions::new();
            let (key, options) = if are_shared {
                ("catalogue".to_owned(), options.shared())
            } else {
                (format!("catalogue:{reader}"), options)
            };
            let mut held = 0.0;
            while Instant::now() < ends {
                let guard = redlock.acquire_with(&*key, options.clone()).await?;
                tokio::time::sleep(SHORT).await;
                guard.release().await?;
                held += 1.0;
            }
            Ok::<_, Failed>(held)
        });
    }
    let mut held: f64 = 0.0;
    while let Some(reader) = readers.join_next().await {
        held += reader.map_err(|error| Failed(format!("{error}")))??;
    }
    Ok(held / SAMPLE.as_secs_f64())
}

/// Returns the longest wait of a writer among readers that come all the time.
async fn longest_wait(clients: &[Redlock]) -> Result<Duration> {
    let options = AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(60)));
    let mut readers = JoinSet::new();
    for reader in 0..CLIENTS * READERS {
        let (redlock, options) = (clients[reader % CLIENTS].clone(), options.clone().shared());
        let steps = u32::try_from(reader).unwrap_or(0);
        readers.spawn(async move {
            tokio::time::sleep(LONG / 64 * steps).await;
            read_on(redlock, options).await
        });
    }
    tokio::time::sleep(3 * LONG).await;
    let mut longest = Duration::ZERO;
    for write in 0..WRITES {
        let began = Instant::now();
        let guard = clients[write % CLIENTS].acquire_with("report", options.clone());
        let guard = guard.await?;
        longest = longest.max(began.elapsed());
        guard.release().await?;
        tokio::time::sleep(2 * LONG).await;
    }
    if let Some(reader) = readers.try_join_next() {
        match reader.map_err(|error| Failed(format!("{error}")))?? {}
    }
    readers.shutdown().await;
    Ok(longest)
}

/// Reads again and again, until a read fails.
async fn read_on(redlock: Redlock, options: AcquireOptions) -> Result<Infallible> {
    loop {
        let guard = redlock.acquire_with("report", options.clone()).await?;
        tokio::time::sleep(LONG).await;
        guard.release().await?;
    }
}

const SHARED: &str = "reads of one key a second";
const ALONE: &str = "as many alone, each on its own";
const WAIT: &str = "longest wait of a writer";
const READ: &str = "longest read";
const NODES: usize = 3;
const CLIENTS: usize = 4;
const READERS: usize = 16;
const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_millis(100);
const SAMPLE: Duration = Duration::from_secs(1);
const WRITES: usize = 5;
const MOST_ROUNDS: usize = 7;
