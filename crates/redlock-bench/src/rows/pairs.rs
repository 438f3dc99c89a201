//! Pairs of several contenders, measured in turn.

use std::time::Duration;

use crate::{
    contender::{Outcome, Workload},
    failed::{Failed, Result},
    report::{OURS, Report},
    site::{Contender, Nodes},
    statistics::{Series, ratios},
};

/// The figures of one contender, one for each repeat.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) contender: String,
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
            contender: contender.name().to_owned(),
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
            let contender = &self.contender;
            return Err(Failed(format!(
                "{contender}: {done} pairs done, {failed} failed"
            )));
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

/// Adds a figure of every contender, as it is and against *raw*, and that of ours against each peer.
pub(super) fn add(
    report: &mut Report,
    row: &'static str,
    metric: &str,
    all: &[Pairs],
    figures: fn(&Pairs) -> &Series,
) {
    let unit = if metric.contains("/s") { "" } else { ", µs" };
    for pairs in all {
        let metric = format!("{metric}{unit}");
        report.add(row, &pairs.contender, metric, "", figures(pairs));
    }
    for base in all {
        let others = all.iter().filter(|other| other.contender != base.contender);
        for other in others.filter(|other| base.contender == RAW || other.contender == OURS) {
            let ratios = ratios(figures(other), figures(base));
            report.add(row, &other.contender, metric, &base.contender, &ratios);
        }
    }
}

pub(super) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// The contender that the others are compared with.
const RAW: &str = "raw";
