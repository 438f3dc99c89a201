//! Pairs of several contenders, measured in turn.

use std::time::Duration;

use crate::{
    contender::{Outcome, Workload},
    failed::{Failed, Result},
    report::{OURS, Report, Table, number},
    site::{Contender, Nodes},
    statistics::{Series, Summary, ratios},
};

/// The figures of one contender, one for each repeat.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) who: String,
    /// Microseconds.
    pub(super) p50: Series,
    pub(super) p99: Series,
    pub(super) acquire: Series,
    /// Microseconds of CPU time per pair.
    pub(super) client: Series,
    pub(super) nodes: Series,
    pub(super) per_second: Series,
}

/// Measures each contender once per repeat, in an order that changes, after one sample that does not count.
pub(super) fn measure(
    contenders: &mut [Contender],
    nodes: &Nodes,
    workload: &Workload,
    repeats: usize,
) -> Result<Vec<Pairs>> {
    let mut all: Vec<_> = contenders.iter().map(Pairs::of).collect();
    for contender in &mut *contenders {
        contender.run(workload)?;
    }
    for repeat in 0..repeats {
        for turn in 0..contenders.len() {
            let index = (repeat + turn) % contenders.len();
            all[index].sample(&mut contenders[index], nodes, workload)?;
        }
    }
    Ok(all)
}

impl Pairs {
    /// Makes room for the figures of a contender.
    pub(super) fn of(contender: &Contender) -> Self {
        Self {
            who: contender.name().to_owned(),
            ..Self::default()
        }
    }

    fn sample(
        &mut self,
        contender: &mut Contender,
        nodes: &Nodes,
        workload: &Workload,
    ) -> Result<()> {
        let before = nodes.cpu()?;
        let outcome = contender.run(workload)?;
        let nodes = nodes.cpu()?.saturating_sub(before);
        self.add(&outcome, Some(nodes))
    }

    /// Adds what a contender says of a repeat, with the CPU time of the nodes if it is known.
    ///
    /// # Errors
    ///
    /// It has done nothing, or has failed at some of it: then no figure says how fast it is.
    pub(super) fn add(&mut self, outcome: &Outcome, nodes: Option<Duration>) -> Result<()> {
        if outcome.done == 0 || outcome.failed > 0 {
            let Outcome { done, failed, .. } = outcome;
            let who = &self.who;
            return Err(Failed(format!("{who}: {done} pairs done, {failed} failed")));
        }
        let done = outcome.done as f64;
        self.p50.push(micros(outcome.pair.p50));
        self.p99.push(micros(outcome.pair.p99));
        self.acquire.push(micros(outcome.acquire.p50));
        self.client.push(micros(outcome.cpu) / done);
        self.nodes
            .push(nodes.map_or(f64::NAN, |nodes| micros(nodes) / done));
        self.per_second.push(done / outcome.wall.as_secs_f64());
        Ok(())
    }
}

/// Writes a table of all figures, with latencies and rates compared with those of `base`.
pub(super) fn table(all: &[Pairs], base: &str) -> String {
    let [p50, per_second] = [format!("p50 × {base}"), format!("pairs/s × {base}")];
    let mut table = Table::new([
        "µs; min..max of the repeats",
        "p50",
        &p50,
        "min..max",
        "p99",
        "acquire p50",
        "client CPU",
        "nodes CPU",
        "pairs/s",
        &per_second,
        "min..max",
    ]);
    let base = all.iter().find(|pairs| pairs.who == base);
    for pairs in all {
        let median = |figures: &Series| number(Summary::of(figures).median);
        let compared = |figures: fn(&Pairs) -> &Series| {
            let bases = base.map(figures).map_or(&[][..], Vec::as_slice);
            let Summary { median, min, max } = Summary::of(&ratios(figures(pairs), bases));
            let range = format!("{}..{}", number(min), number(max));
            (number(median), range)
        };
        let (p50, p50_range) = compared(|pairs| &pairs.p50);
        let (rate, rate_range) = compared(|pairs| &pairs.per_second);
        table.add([
            pairs.who.clone(),
            median(&pairs.p50),
            p50,
            p50_range,
            median(&pairs.p99),
            median(&pairs.acquire),
            median(&pairs.client),
            median(&pairs.nodes),
            median(&pairs.per_second),
            rate,
            rate_range,
        ]);
    }
    table.text()
}

/// Adds a figure of every contender against *raw*, and of ours against each peer.
pub(super) fn compare(
    report: &mut Report,
    row: &'static str,
    metric: &str,
    all: &[Pairs],
    figures: fn(&Pairs) -> &Series,
) {
    for base in all {
        let others = all.iter().filter(|other| other.who != base.who);
        for other in others.filter(|other| base.who == RAW || other.who == OURS) {
            let ratios = ratios(figures(other), figures(base));
            report.add(row, &other.who, metric, &base.who, &ratios);
        }
    }
}

/// Adds a figure of every contender as it is.
pub(super) fn absolute(
    report: &mut Report,
    row: &'static str,
    metric: &str,
    all: &[Pairs],
    figures: fn(&Pairs) -> &Series,
) {
    for pairs in all {
        report.add(row, &pairs.who, metric, "", figures(pairs));
    }
}

pub(super) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// The contender that the others are compared with.
pub(super) const RAW: &str = "raw";
