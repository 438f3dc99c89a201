//! The report of the doctor.

use std::{io, time::Duration};

use redlock_core::{NodeAnswer, NodeReport};
use serde::Serialize;

use super::{
    facts::Facts,
    finding::{Finding, Findings, Level},
    scratch::Scratch,
};
use crate::{
    connection::Settings,
    output::{Mark, Output, millis, rounded},
    probe::Percentiles,
};

/// All that was seen.
pub(super) struct Report<'a> {
    pub(super) settings: &'a Settings,
    pub(super) reports: &'a [NodeReport],
    pub(super) facts: &'a [Option<Facts>],
    pub(super) votes: usize,
    pub(super) scratch: Option<&'a Scratch>,
    pub(super) findings: &'a Findings,
}

#[derive(Serialize)]
struct Json<'a> {
    status: &'static str,
    namespace: &'a str,
    nodes: Vec<Node<'a>>,
    votes: usize,
    majority: usize,
    end_to_end: Option<EndToEnd>,
    findings: &'a [Finding],
}

#[derive(Serialize)]
struct Node<'a> {
    node: &'a str,
    votes: bool,
    version: Option<String>,
    uptime_seconds: Option<u64>,
    round_trip_ms: Option<Percentiles>,
    script_ms: Option<Percentiles>,
    clock_ahead_ms: Option<f64>,
    unverified: &'a [&'static str],
}

#[derive(Serialize)]
struct EndToEnd {
    acquire_ms: Percentiles,
    least_validity_ms: f64,
    ttl_ms: f64,
}

impl Report<'_> {
    fn status(&self) -> &'static str {
        let count = |level| self.findings.count(level);
        if self.votes < self.settings.majority() {
            "no_quorum"
        } else if count(Level::Failure) > 0 {
            "failure"
        } else if count(Level::Warning) > 0 {
            "warnings"
        } else {
            "ok"
        }
    }

    pub(super) fn print(&self, output: Output) -> io::Result<()> {
        if output.is_json() {
            return output.json(&self.as_json());
        }
        let nodes = self.reports.len();
        let (votes, majority) = (self.votes, self.settings.majority());
        let namespace = self.settings.namespace();
        let max_ttl = rounded(self.settings.max_ttl());
        let heading = format!(
            "namespace {namespace}, max_ttl {max_ttl}: {votes} of {nodes} nodes vote, {majority} are needed"
        );
        output.line(&heading)?;
        for (report, facts) in self.reports.iter().zip(self.facts) {
            if is_a_vote(report) {
                output.marked(Mark::Good, &healthy(&report.node, facts.as_ref()))?;
            }
        }
        if let Some(scratch) = self.scratch {
            let line = format!(
                "lock acquired, contended, extended, released: {} (99 %: {}), {} of {} left at the least",
                rounded(scratch.acquire.percentile(50)),
                rounded(scratch.acquire.percentile(99)),
                rounded(scratch.least_validity),
                rounded(self.settings.ttl())
            );
            output.marked(Mark::Good, &line)?;
        }
        let mut findings: Vec<&Finding> = self.findings.0.iter().collect();
        findings.sort_by_key(|finding| (std::cmp::Reverse(finding.level), finding.node.is_some()));
        let mut findings = findings.into_iter().peekable();
        while let Some(finding) = findings.next() {
            let found = match &finding.node {
                Some(node) => format!("{node} {}", finding.found),
                None => finding.found.clone(),
            };
            output.marked(
                finding.level.mark(),
                &format!("{found} [{}]", finding.check),
            )?;
            // What is to be done about several nodes is said once.
            if findings
                .peek()
                .is_none_or(|next| next.advice != finding.advice)
            {
                output.indented(&format!("-> {}", finding.advice))?;
            }
        }
        let unverified = self.unverified();
        if !unverified.is_empty() {
            let line = format!("not verified, because a user may not ask: {unverified}");
            output.marked(Mark::Note, &line)?;
        }
        Ok(())
    }

    fn unverified(&self) -> String {
        let all = self
            .facts
            .iter()
            .flatten()
            .flat_map(|facts| &facts.unverified);
        let mut all: Vec<&str> = all.copied().collect();
        all.sort_unstable();
        all.dedup();
        all.join(", ")
    }

    fn as_json(&self) -> Json<'_> {
        let nodes = self.reports.iter().zip(self.facts);
        Json {
            status: self.status(),
            namespace: self.settings.namespace(),
            nodes: nodes
                .map(|(report, facts)| node(report, facts.as_ref()))
                .collect(),
            votes: self.votes,
            majority: self.settings.majority(),
            end_to_end: self.scratch.map(|scratch| EndToEnd {
                acquire_ms: Percentiles::of(&scratch.acquire),
                least_validity_ms: millis(scratch.least_validity),
                ttl_ms: millis(self.settings.ttl()),
            }),
            findings: &self.findings.0,
        }
    }
}

fn node<'a>(report: &'a NodeReport, facts: Option<&'a Facts>) -> Node<'a> {
    let seconds = facts.and_then(|facts| facts.clock).map(|clock| clock.ahead);
    Node {
        node: &report.node,
        votes: is_a_vote(report),
        version: facts.map(|facts| facts.info.version()),
        uptime_seconds: facts.and_then(|facts| facts.info.number("uptime_in_seconds")),
        round_trip_ms: facts.map(|facts| Percentiles::of(&facts.round_trip)),
        script_ms: facts.map(|facts| Percentiles::of(&facts.script)),
        clock_ahead_ms: seconds.map(|seconds| seconds * 1_000.0),
        unverified: facts.map_or(&[], |facts| &facts.unverified),
    }
}

fn is_a_vote(report: &NodeReport) -> bool {
    report.answer == NodeAnswer::Reachable
}

fn healthy(node: &str, facts: Option<&Facts>) -> String {
    let Some(facts) = facts else {
        return format!("{node} votes");
    };
    let up = facts.info.number("uptime_in_seconds").unwrap_or(0);
    let up = rounded(Duration::from_secs(up));
    format!(
        "{node} votes: {}, up {up}, round trip {} (99 %: {})",
        facts.info.version(),
        rounded(facts.round_trip.percentile(50)),
        rounded(facts.round_trip.percentile(99)),
    )
}
