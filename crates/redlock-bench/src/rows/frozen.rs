//! P4: one of five nodes is frozen.

use std::{thread, time::Duration};

use super::{
    Bench,
    pairs::{self, Pairs},
};
use crate::{
    contender::Workload,
    failed::Result,
    site::Nodes,
    statistics::{Series, ratios},
};

pub(super) fn p4(bench: &mut Bench) -> Result<()> {
    let title = "64 tasks, one of 5 nodes frozen, × the same without; redlock hangs, so it cannot";
    bench.report.begin("P4", title);
    let nodes = Nodes::start(5)?;
    let mut contenders = bench.contenders(&["raw", "redis-rs", "rslock", "ours"], &nodes.urls())?;
    let empty = || contenders.iter().map(Pairs::of).collect::<Vec<_>>();
    let (mut healthy, mut frozen) = (empty(), empty());
    let workload = Workload::Pairs {
        tasks: 64,
        length: bench.scale.sample,
    };
    for contender in &mut contenders {
        contender.run(&workload)?;
    }
    for repeat in 0..bench.scale.repeats {
        for turn in 0..contenders.len() {
            let index = (repeat + turn) % contenders.len();
            let contender = &mut contenders[index];
            healthy[index].add(&contender.run(&workload)?, None)?;
            let run = || contender.run(&workload);
            frozen[index].add(&nodes.while_frozen(repeat, run)?, None)?;
            // What waited for the node is done with, and its clients look at it again.
            thread::sleep(REST);
        }
    }
    for (healthy, frozen) in healthy.iter().zip(&frozen) {
        let mut add = |metric, figures: fn(&Pairs) -> &Series| {
            let ratios = ratios(figures(frozen), figures(healthy));
            let report = &mut bench.report;
            report.add("P4", &healthy.contender, metric, "healthy", &ratios);
        };
        add("pairs/s", |pairs| &pairs.per_second);
        add("p99 of a pair", |pairs| &pairs.p99);
    }
    pairs::add(&mut bench.report, "P4", "pairs/s", &frozen, |pairs| {
        &pairs.per_second
    });
    Ok(())
}

const REST: Duration = Duration::from_millis(300);
