//! P4: one of five nodes is frozen.

use std::{thread, time::Duration};

use super::{
    Bench,
    pairs::{self, Pairs},
};
use crate::{
    contender::Workload,
    failed::Result,
    report::{Table, number},
    site::Nodes,
    statistics::{Series, Summary, ratios},
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
    print(&healthy, &frozen);
    for (healthy, frozen) in healthy.iter().zip(&frozen) {
        let mut add = |metric, figures: fn(&Pairs) -> &Series| {
            let ratios = ratios(figures(frozen), figures(healthy));
            let report = &mut bench.report;
            report.add("P4", &healthy.who, metric, "healthy", &ratios);
        };
        add("pairs/s", |pairs| &pairs.per_second);
        add("p99 of a pair", |pairs| &pairs.p99);
    }
    pairs::compare(&mut bench.report, "P4", "pairs/s", &frozen, |pairs| {
        &pairs.per_second
    });
    Ok(())
}

fn print(healthy: &[Pairs], frozen: &[Pairs]) {
    let mut table = Table::new([
        "", "pairs/s", "frozen", "ratio", "min..max", "p99 µs", "frozen", "ratio", "min..max",
    ]);
    for (healthy, frozen) in healthy.iter().zip(frozen) {
        let compared = |figures: fn(&Pairs) -> &Series| {
            let of = |pairs| number(Summary::of(figures(pairs)).median);
            let Summary { median, min, max } =
                Summary::of(&ratios(figures(frozen), figures(healthy)));
            let range = format!("{}..{}", number(min), number(max));
            [of(healthy), of(frozen), number(median), range]
        };
        let [rate, rate_frozen, rate_ratio, rate_range] = compared(|pairs| &pairs.per_second);
        let [p99, p99_frozen, p99_ratio, p99_range] = compared(|pairs| &pairs.p99);
        table.add([
            healthy.who.clone(),
            rate,
            rate_frozen,
            rate_ratio,
            rate_range,
            p99,
            p99_frozen,
            p99_ratio,
            p99_range,
        ]);
    }
    eprintln!("\n{}", table.text());
}

const REST: Duration = Duration::from_millis(300);
