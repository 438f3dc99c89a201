//! P13: how much of a resource's slots is used while more want one than there are.

use std::time::Duration;

use redlock_core::{AcquireOptions, Redlock, Wait};
use tokio::{task::JoinSet, time::Instant};

use super::{Bench, clients::start};
use crate::{
    failed::{Failed, Result},
    report::{OURS, Table, number},
    statistics::Summary,
};

pub(super) fn p13(bench: &mut Bench) -> Result<()> {
    let rounds = bench.scale.repeats.min(MOST_ROUNDS);
    let title = format!(
        "{SLOTS} slots, {} callers of {CLIENTS} clients, holds of {} ms, {NODES} nodes; {rounds} rounds",
        4 * SLOTS,
        HOLD.as_millis()
    );
    bench.report.begin("P13", &title);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let shares = runtime.block_on(measure(rounds))?;
    let mut table = Table::new(["", "median", "min..max of the rounds"]);
    let Summary { median, min, max } = Summary::of(&shares);
    let range = format!("{}..{}", number(min), number(max));
    table.add([USED.to_owned(), number(median), range]);
    eprintln!("\n{}", table.text());
    bench.report.add("P13", OURS, USED, "", &shares);
    Ok(())
}

async fn measure(rounds: usize) -> Result<Vec<f64>> {
    let (_servers, clients) = start(NODES, CLIENTS).await?;
    let mut shares = Vec::new();
    for number in 0..rounds {
        shares.push(round(&clients, number).await?);
    }
    Ok(shares)
}

/// Returns the share of all slots' time in which one was held.
async fn round(clients: &[Redlock], number: usize) -> Result<f64> {
    let mut callers = JoinSet::new();
    let began = Instant::now();
    let ends = began + SAMPLE;
    for caller in 0..4 * SLOTS {
        let slots = clients[caller % CLIENTS].slots(format!("reports:{number}"), SLOTS);
        let slots = slots.map_err(|error| Failed(format!("{error}")))?;
        callers.spawn(async move {
            let options = AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(60)));
            let mut held = Duration::ZERO;
            while Instant::now() < ends {
                let guard = slots.acquire_with(options.clone()).await?;
                let since = Instant::now();
                tokio::time::sleep(HOLD).await;
                // What is held after the end is not of the sample.
                held += Instant::now().min(ends).saturating_duration_since(since);
                guard.release().await?;
            }
            Ok::<_, Failed>(held)
        });
    }
    let mut held = Duration::ZERO;
    while let Some(caller) = callers.join_next().await {
        held += caller.map_err(|error| Failed(format!("{error}")))??;
    }
    let share = held.as_secs_f64() / SAMPLE.as_secs_f64() / SLOTS as f64;
    if share > 1.0 {
        return Err(Failed("more had a slot than there are".to_owned()));
    }
    Ok(share)
}

const USED: &str = "share of the slots' time in which one is held";
const NODES: usize = 3;
const SLOTS: usize = 4;
const CLIENTS: usize = 4;
const HOLD: Duration = Duration::from_millis(100);
const SAMPLE: Duration = Duration::from_secs(3);
const MOST_ROUNDS: usize = 7;
