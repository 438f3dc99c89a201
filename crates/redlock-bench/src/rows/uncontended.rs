//! P1 and P2: acquire and release, on keys that no other task wants.

use super::{
    Bench,
    pairs::{self, Pairs},
};
use crate::{contender::Workload, failed::Result, site::Nodes, statistics::Series};

/// Measures one task: latency.
pub(super) fn p1(bench: &mut Bench) -> Result<()> {
    let title = format!("one task, distinct keys, {NODES} nodes");
    bench.report.begin("P1", &title);
    let all = measure(bench, 1, &["raw", "redis-rs", "rslock", "redlock", "ours"])?;
    for (metric, figures) in METRICS {
        pairs::add(&mut bench.report, "P1", metric, &all, figures);
    }
    Ok(())
}

/// Measures many tasks: throughput.
pub(super) fn p2(bench: &mut Bench) -> Result<()> {
    let title = format!("many tasks, distinct keys, {NODES} nodes; redlock blocks, so it cannot");
    bench.report.begin("P2", &title);
    for tasks in [64, 256] {
        let all = measure(bench, tasks, &["raw", "redis-rs", "rslock", "ours"])?;
        for (metric, figures) in METRICS {
            let metric = format!("{metric}, {tasks} tasks");
            pairs::add(&mut bench.report, "P2", &metric, &all, figures);
        }
    }
    Ok(())
}

fn measure(bench: &Bench, tasks: usize, clients: &[&str]) -> Result<Vec<Pairs>> {
    let nodes = Nodes::start(NODES)?;
    let mut contenders = bench.contenders(clients, &nodes.urls())?;
    let workload = Workload::Pairs {
        tasks,
        length: bench.scale.sample,
    };
    pairs::measure(&mut contenders, &nodes, &workload, bench.scale.repeats)
}

const NODES: usize = 5;

type Figures = fn(&Pairs) -> &Series;

const METRICS: [(&str, Figures); 6] = [
    ("p50 of a pair", |pairs| &pairs.p50),
    ("p99 of a pair", |pairs| &pairs.p99),
    ("p50 of an acquire", |pairs| &pairs.acquire),
    ("pairs/s", |pairs| &pairs.per_second),
    ("CPU of client per pair", |pairs| &pairs.client),
    ("CPU of nodes per pair", |pairs| &pairs.nodes),
];
