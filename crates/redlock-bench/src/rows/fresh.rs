//! P16: leases of which a node is lost while they are young.

use std::time::Duration;

use redlock_core::{AcquireOptions, NodeAnswer, Redlock, Wait};
use redlock_sandbox::{Server, ServerBinary, ServerOptions, ServerSet};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::Bench;
use crate::{
    failed::{Failed, Result},
    report::OURS,
};

/// Takes a node away in three ways, and counts the leases that are lost with it.
pub(super) fn p16(bench: &mut Bench) -> Result<()> {
    let title = format!(
        "leases of {TTL:?}, one of {NODES} nodes taken away in their first {YOUNG:?}; {} leases for each way",
        TRIALS * LEASES
    );
    bench.report.begin("P16", &title);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    for (way, metric) in [
        (Way::Kill, "leases lost with a node killed"),
        (Way::Freeze, "leases lost with a node frozen"),
        (Way::Flush, "leases lost with a node flushed"),
    ] {
        let lost = runtime.block_on(trials(way))?;
        eprintln!("  {metric}: {lost}");
        bench
            .report
            .add("P16", OURS, metric, "", &vec![lost as f64]);
    }
    Ok(())
}

/// How a node is taken away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Kill,
    Freeze,
    Flush,
}

impl Way {
    fn take(self, node: &mut Server) -> Result<()> {
        match self {
            Self::Kill => node.kill()?,
            Self::Freeze => node.freeze()?,
            Self::Flush => drop(node.command(&["FLUSHALL"])?),
        }
        Ok(())
    }

    fn give_back(self, node: &mut Server) -> Result<()> {
        match self {
            Self::Kill => node.restart()?,
            Self::Freeze => node.thaw()?,
            Self::Flush => {}
        }
        Ok(())
    }
}

/// Returns how many leases are lost in all trials.
async fn trials(way: Way) -> Result<usize> {
    let binary = ServerBinary::find()?;
    let mut servers = ServerSet::start(&binary, NODES, &ServerOptions::default())?;
    let redlock = Redlock::builder()
        .nodes(servers.urls())
        .ttl(TTL)
        .max_ttl(TTL)
        .build()
        .await?;
    let mut lost = 0;
    for trial in 0..TRIALS {
        all_vote(&redlock).await?;
        lost += self::trial(&redlock, &mut servers[trial % NODES], way, trial).await?;
    }
    redlock.close().await;
    Ok(lost)
}

/// Acquires leases at equal distances, takes the node away when the first of them is no longer young, and returns how many
/// are lost a ttl later.
async fn trial(redlock: &Redlock, node: &mut Server, way: Way, trial: usize) -> Result<usize> {
    let begun = Instant::now();
    let mut acquires = JoinSet::new();
    for lease in 0..LEASES {
        let redlock = redlock.clone();
        acquires.spawn(async move {
            sleep_until(begun + YOUNG * lease as u32 / LEASES as u32).await;
            let options = AcquireOptions::new().ttl(TTL).wait(Wait::UpTo(TTL));
            redlock
                .acquire_with(&format!("{trial}:{lease}"), options)
                .await
        });
    }
    sleep_until(begun + YOUNG).await;
    way.take(node)?;
    let mut guards = Vec::new();
    while let Some(acquired) = acquires.join_next().await {
        guards.push(acquired.map_err(|error| Failed(error.to_string()))??);
    }
    sleep(TTL + TTL / 10).await;
    let lost = guards.iter().filter(|guard| !guard.lease().is_held());
    let lost = lost.count();
    way.give_back(node)?;
    for guard in guards {
        // A lease that is lost has nothing to release.
        drop(guard.release().await);
    }
    Ok(lost)
}

/// Waits until all nodes vote: no lease is held, so one that was emptied has forgotten nothing.
async fn all_vote(redlock: &Redlock) -> Result<()> {
    let until = Instant::now() + LONGEST;
    while Instant::now() < until {
        redlock.dangerous_bless().await;
        let reports = redlock.node_reports().await;
        if reports
            .iter()
            .all(|node| node.answer == NodeAnswer::Reachable)
        {
            return Ok(());
        }
        sleep(TTL / 100).await;
    }
    Err(Failed("a node that came back does not vote".to_owned()))
}

const NODES: usize = 5;
/// Of each way.
const TRIALS: usize = 4;
const LEASES: usize = 250;
const YOUNG: Duration = Duration::from_millis(300);
const TTL: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(10);
