//! `redlock doctor`: looks at everything that a lock rests on, and says what to do about it.

use std::{collections::BTreeSet, io};

use redlock_console::{
    look::doctor::{
        Examination, examine,
        facts::Facts,
        finding::Finding,
        locks::{Scratch, check_scratch},
        naming::Naming,
    },
    snapshot::Severity,
};
use redlock_core::NodeReport;
use serde_json::{Value, json};

use crate::{
    clock::{millis, rounded},
    connection::{ConnectionArgs, NodeSettings},
    context::CommandContext,
    exit::{CommandResult, Exit},
    nodes::{self, votes, voting},
    output::{LineMark, Output},
    probe::{self, Timings},
};

/// The arguments of `doctor`.
#[derive(clap::Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Looks at every key too; its user needs +scan
    #[arg(long)]
    deep: bool,

    /// Ends with 1 if there are warnings
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Examines the nodes.
///
/// It is a client of the namespace while it runs, so nodes that are new to it begin their first quarantine.
/// It makes locks on keys of its own, and releases them.
pub(crate) async fn run(args: DoctorArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let mut places = probe::connect(&settings).await;
    let (client, reports) = nodes::connect(context, &settings).await?;

    let votes = voting(&reports);
    let Examination {
        mut findings,
        facts,
        namings,
        ..
    } = examine(&mut places, &reports, &settings, args.deep).await;
    let mut scratch = None;
    if let Some(client) = &client
        && votes >= settings.majority()
    {
        let other = context.client(settings.builder()).await?;
        scratch = check_scratch(client, &other, &mut findings).await;
    }

    let (status, exit) = match findings.worst() {
        _ if votes < settings.majority() => ("no_quorum", Exit::NoQuorum),
        Some(Severity::Failure) => ("failure", Exit::Wrong),
        Some(Severity::Warning) if args.strict => ("warnings", Exit::No),
        Some(Severity::Warning) => ("warnings", Exit::Yes),
        Some(Severity::Note) | None => ("ok", Exit::Yes),
    };
    let report = DoctorReport {
        status,
        settings,
        reports,
        facts,
        namings,
        votes,
        scratch,
        findings: findings.worst_first(),
    };
    report.print(context.output)?;
    Ok(exit)
}

/// The results of an examination.
struct DoctorReport {
    status: &'static str,
    settings: NodeSettings,
    reports: Vec<NodeReport>,
    facts: Vec<Option<Facts>>,
    namings: Vec<Option<Naming>>,
    votes: usize,
    scratch: Option<Scratch>,
    findings: Vec<Finding>,
}

impl DoctorReport {
    fn print(&self, output: Output) -> io::Result<()> {
        if output.is_json() {
            return output.json(&self.to_json());
        }
        let (nodes, voting) = (self.reports.len(), self.votes);
        let (namespace, majority) = (self.settings.namespace(), self.settings.majority());
        let max_ttl = rounded(self.settings.max_ttl());
        let heading = format!(
            "namespace {namespace}, max_ttl {max_ttl}: {voting} of {nodes} nodes vote, {majority} are needed"
        );
        output.line(&heading)?;
        for (at, report) in self.reports.iter().enumerate() {
            if votes(report) {
                let facts = self.facts[at].as_ref();
                output.marked(LineMark::Good, &healthy(&self.name(at), facts))?;
            }
            let naming = self.namings[at].as_ref();
            if let Some(line) = naming.and_then(Naming::line) {
                let mark = LineMark::Note;
                output.marked(mark, &format!("{} {line}", report.node))?;
            }
        }
        if let Some(scratch) = &self.scratch {
            let (left, ttl) = (
                rounded(scratch.least_validity),
                rounded(self.settings.ttl()),
            );
            let times = usual(&scratch.acquire);
            let line = format!(
                "lock acquired, contended, extended, released: {times}, {left} of {ttl} left at the least"
            );
            output.marked(LineMark::Good, &line)?;
        }
        let mut findings = self.findings.iter().peekable();
        while let Some(finding) = findings.next() {
            let found = match &finding.node {
                Some(node) => format!("{} {}", self.name_of(node), finding.found),
                None => finding.found.clone(),
            };
            let line = format!("{found} [{}]", finding.check);
            output.marked(mark_of(finding.level), &line)?;
            // What is to be done about several nodes is said once.
            let next = findings.peek();
            if next.is_none_or(|next| next.advice != finding.advice) {
                output.indented(&format!("-> {}", finding.advice))?;
            }
        }
        let unverified = self.unverified();
        if !unverified.is_empty() {
            let line = format!("not verified, because a user may not ask: {unverified}");
            output.marked(LineMark::Note, &line)?;
        }
        Ok(())
    }

    /// Returns the name of a node, with the address of its server if others name it.
    fn name(&self, at: usize) -> String {
        let report = &self.reports[at];
        let named = self.namings[at].as_ref().and_then(Naming::server);
        nodes::name_at(&report.node, report.server().or(named))
    }

    /// Returns the same by the name alone, as findings have it.
    fn name_of(&self, node: &str) -> String {
        let at = self.reports.iter().position(|report| *report.node == *node);
        at.map_or_else(|| node.to_owned(), |at| self.name(at))
    }

    fn unverified(&self) -> String {
        let facts = self.facts.iter().flatten();
        let all: BTreeSet<&str> = facts.flat_map(|facts| facts.unverified.clone()).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    }

    fn to_json(&self) -> Value {
        let nodes = self.reports.iter().zip(&self.facts).zip(&self.namings);
        let nodes = nodes.map(|((report, facts), naming)| {
            let facts = facts.as_ref();
            let clock = facts.and_then(|facts| facts.clock);
            json!({
                "node": &*report.node,
                "server": report.server().or_else(|| naming.as_ref()?.server()),
                "informants": naming.as_ref().map(Naming::to_json),
                "votes": votes(report),
                "version": facts.map(|facts| facts.info.version()),
                "uptime_seconds": facts.and_then(Facts::up).map(|up| up.as_secs()),
                "round_trip_ms": facts.map(|facts| facts.round_trip.to_json()),
                "script_ms": facts.map(|facts| facts.script.to_json()),
                "clock_ahead_ms": clock.map(|clock| clock.ahead * 1_000.0),
                "unverified": facts.map_or(&[][..], |facts| &facts.unverified),
            })
        });
        let end_to_end = self.scratch.as_ref().map(|scratch| {
            json!({
                "acquire_ms": scratch.acquire.to_json(),
                "least_validity_ms": millis(scratch.least_validity),
                "ttl_ms": millis(self.settings.ttl()),
            })
        });
        json!({
            "status": self.status,
            "namespace": self.settings.namespace(),
            "nodes": nodes.collect::<Vec<_>>(),
            "votes": self.votes,
            "majority": self.settings.majority(),
            "end_to_end": end_to_end,
            "findings": self.findings,
        })
    }
}

const fn mark_of(level: Severity) -> LineMark {
    match level {
        Severity::Note => LineMark::Note,
        Severity::Warning => LineMark::Warning,
        Severity::Failure => LineMark::Bad,
    }
}

fn healthy(node: &str, facts: Option<&Facts>) -> String {
    let Some(facts) = facts else {
        return format!("{node} votes");
    };
    let (version, up) = (facts.info.version(), facts.up().unwrap_or_default());
    let (up, times) = (rounded(up), usual(&facts.round_trip));
    format!("{node} votes: {version}, up {up}, round trip {times}")
}

/// Returns the median of times, and the time within which nearly all are.
fn usual(times: &Timings) -> String {
    let [p50, p99] = [50, 99].map(|percent| rounded(times.percentile(percent)));
    format!("{p50} (99 %: {p99})")
}
