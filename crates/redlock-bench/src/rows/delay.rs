//! P3: how many round trips a pair takes.

use std::time::Duration;

use super::{
    Bench,
    pairs::{self, Pairs, micros},
};
use crate::{
    contender::{Spread, Workload},
    failed::Result,
    site::{Nodes, Relays},
    statistics::{Series, ratios},
};

pub(super) fn p3(bench: &mut Bench) -> Result<()> {
    bench.report.begin(
        "P3",
        "one task, distinct keys, 5 nodes behind a 4 ms round trip",
    );
    let nodes = Nodes::start(5)?;
    let relays = Relays::start(&nodes, ROUND_TRIP)?;
    let mut contenders = bench.contenders(
        &["raw", "redis-rs", "rslock", "redlock", "ours"],
        &relays.urls(),
    )?;
    let mut all: Vec<_> = contenders.iter().map(Pairs::of).collect();
    let mut round_trips = Series::new();
    let workload = Workload::Pairs {
        tasks: 1,
        length: bench.scale.sample,
    };
    for repeat in 0..bench.scale.repeats {
        round_trips.push(micros(Spread::of(relays.round_trips(PINGS)?).p50));
        for turn in 0..contenders.len() {
            let index = (repeat + turn) % contenders.len();
            all[index].add(&contenders[index].run(&workload)?, None)?;
        }
    }
    let report = &mut bench.report;
    report.add("P3", "relay", "a round trip, µs", "", &round_trips);
    for pairs in &all {
        let trips = ratios(&pairs.p50, &round_trips);
        report.add(
            "P3",
            &pairs.contender,
            "p50 of a pair",
            "round trip",
            &trips,
        );
    }
    pairs::add(report, "P3", "p50 of a pair", &all, |pairs| &pairs.p50);
    Ok(())
}

const ROUND_TRIP: Duration = Duration::from_millis(4);
/// How often the round trip is measured in a repeat.
pub(super) const PINGS: usize = 21;
