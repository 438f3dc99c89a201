//! P1 and P2: acquire and release, on keys that no other task wants.

use super::{
    Bench,
    pairs::{self, RAW},
};
use crate::{contender::Workload, failed::Result, site::Nodes};

/// Measures one task: latency.
pub(super) fn p1(bench: &mut Bench) -> Result<()> {
    let title = format!("one task, distinct keys, {NODES} nodes");
    bench.report.begin("P1", &title);
    let all = measure(bench, 1, &["raw", "redis-rs", "rslock", "redlock", "ours"])?;
    eprintln!("\n{}", pairs::table(&all, RAW));
    let report = &mut bench.report;
    pairs::compare(report, "P1", "p50 of a pair", &all, |pairs| &pairs.p50);
    pairs::compare(report, "P1", "p50 of an acquire", &all, |pairs| {
        &pairs.acquire
    });
    pairs::compare(report, "P1", "pairs/s", &all, |pairs| &pairs.per_second);
    pairs::absolute(report, "P1", "CPU of client per pair, µs", &all, |pairs| {
        &pairs.client
    });
    pairs::absolute(report, "P1", "CPU of nodes per pair, µs", &all, |pairs| {
        &pairs.nodes
    });
    Ok(())
}

/// Measures many tasks: throughput.
pub(super) fn p2(bench: &mut Bench) -> Result<()> {
    let title = format!("many tasks, distinct keys, {NODES} nodes; redlock blocks, so it cannot");
    bench.report.begin("P2", &title);
    for tasks in [64, 256] {
        let all = measure(bench, tasks, &["raw", "redis-rs", "rslock", "ours"])?;
        eprintln!("\n  {tasks} tasks\n{}", pairs::table(&all, RAW));
        let report = &mut bench.report;
        let metric = |name: &str| format!("{name}, {tasks} tasks");
        pairs::compare(report, "P2", &metric("pairs/s"), &all, |pairs| {
            &pairs.per_second
        });
        let cpu = metric("CPU of nodes per pair");
        pairs::compare(report, "P2", &cpu, &all, |pairs| &pairs.nodes);
        pairs::absolute(report, "P2", &format!("{cpu}, µs"), &all, |pairs| {
            &pairs.nodes
        });
        let cpu = metric("CPU of client per pair");
        pairs::compare(report, "P2", &cpu, &all, |pairs| &pairs.client);
        pairs::absolute(report, "P2", &format!("{cpu}, µs"), &all, |pairs| {
            &pairs.client
        });
    }
    Ok(())
}

fn measure(bench: &Bench, tasks: usize, clients: &[&str]) -> Result<Vec<pairs::Pairs>> {
    let nodes = Nodes::start(NODES)?;
    let mut contenders = bench.contenders(clients, &nodes.urls())?;
    let workload = Workload::Pairs {
        tasks,
        length: bench.scale.sample,
    };
    pairs::measure(&mut contenders, &nodes, &workload, bench.scale.repeats)
}

const NODES: usize = 5;
