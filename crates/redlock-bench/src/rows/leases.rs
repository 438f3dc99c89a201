//! P8: many leases at rest.

use std::time::Duration;

use super::Bench;
use crate::{
    contender::Workload,
    failed::{Failed, Result},
    site::{Contender, Nodes},
    statistics::Series,
};

pub(super) fn p8(bench: &mut Bench) -> Result<()> {
    let (count, ttl) = (bench.scale.leases, bench.scale.ttl);
    let title = format!("{count} leases of {ttl:?} at rest, 5 nodes; no peer renews what it holds");
    bench.report.begin("P8", &title);
    for program in bench.programs(&["ours"]) {
        let mut nodes = Nodes::start(5)?;
        let mut contender = Contender::start(&program, &nodes.urls())?;
        let leases = measure(bench, &mut contender, &mut nodes)?;
        let report = &mut bench.report;
        let mut add = |metric, figures| report.add("P8", &program.name, metric, "", figures);
        add("acquires/s", &leases.per_second);
        add("share of a core, for 100,000 leases of 30 s", &leases.core);
        add("share of a core in the client", &leases.client);
        add("memory of a lease in the client, bytes", &leases.bytes);
        add("leases lost with a node killed", &leases.lost);
    }
    Ok(())
}

/// The figures, one for each stretch of time; those of memory and loss stand alone.
#[derive(Debug, Default)]
struct Leases {
    per_second: Series,
    client: Series,
    core: Series,
    bytes: Series,
    lost: Series,
}

fn measure(bench: &Bench, contender: &mut Contender, nodes: &mut Nodes) -> Result<Leases> {
    let (count, ttl) = (bench.scale.leases, bench.scale.ttl);
    // What the client needs for its traffic is there before the leases are.
    let tasks = 64;
    let warm = contender.run(&Workload::Keys {
        tasks,
        count: WARM_UP,
    })?;
    let held = contender.run(&Workload::Hold {
        key: "bench:P8".to_owned(),
        tasks,
        count,
        ttl,
    })?;
    if held.failed > 0 {
        return Err(Failed(format!("{} acquires failed", held.failed)));
    }
    let mut leases = Leases::default();
    leases
        .per_second
        .push(held.done as f64 / held.wall.as_secs_f64());
    let memory = held.memory.zip(warm.memory);
    let bytes = memory.map(|(after, before)| after as f64 - before as f64);
    leases
        .bytes
        .extend(bytes.map(|bytes| bytes / held.done as f64));
    // Of fewer leases, or shorter ones, the share is that of as many renewals more, or fewer.
    let scale = 100_000.0 / count as f64 * ttl.as_secs_f64() / 30.0;
    let rest = Workload::Rest { length: ttl / 3 };
    for _ in 0..STRETCHES {
        let before = nodes.cpu()?;
        let outcome = contender.run(&rest)?;
        let nodes = nodes.cpu()?.saturating_sub(before);
        let share = |cpu: Duration| scale * cpu.as_secs_f64() / outcome.wall.as_secs_f64();
        leases.client.push(share(outcome.cpu));
        leases.core.push(share(outcome.cpu + nodes));
    }
    nodes.kill(0)?;
    // Longer than any of them would last without its renewals.
    let outcome = contender.run(&Workload::Rest {
        length: ttl + ttl / 10,
    })?;
    leases.lost.push(outcome.failed as f64);
    Ok(leases)
}

/// In how many parts the leases are looked at, in each of which all of them are renewed.
const STRETCHES: usize = 5;
const WARM_UP: u64 = 20_000;
