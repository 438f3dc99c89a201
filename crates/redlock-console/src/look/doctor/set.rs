//! The nodes as a set: which of them vote as a client sees them, what they have in common, and their clocks.

use std::{collections::BTreeMap, sync::Arc};

use redlock_core::{
    NodeAnswer, NodeReport, NotAVote, Unfit, deadpool_redis::redis::ConnectionAddr,
};

use super::{
    facts::{ClockFacts, Facts, known},
    finding::{Findings, Severity},
    server::is_local,
};
use crate::look::{
    clock::rounded,
    probe::{ProbedNode, median},
    settings::NodeSettings,
};

/// Adds what is wrong with the nodes together.
pub(super) fn check(
    places: &[ProbedNode],
    facts: &[Option<Facts>],
    votes: usize,
    settings: &NodeSettings,
    findings: &mut Findings,
) {
    refused(settings, findings);
    if settings.is_best_effort() {
        let found = "best effort: a failover, or a restart without its data, may forget leases, and a second client may hold them";
        let advice = "use three or five independent masters where two holders at once do harm";
        findings.note(None, "guarantee", found, advice);
    } else {
        count(places.len(), findings);
    }
    quorum(places.len(), votes, settings.majority(), findings);
    domains(places, findings);
    likeness(places, facts, findings);
    restarts(places, facts, settings, findings);
    guards(settings, findings);
}

/// Checks that a service can start with these settings; the command itself takes a shorter ttl.
fn refused(settings: &NodeSettings, findings: &mut Findings) {
    if let Some(why) = settings.refused() {
        let found = format!("no service can start with these settings: {why}");
        let advice = "set REDLOCK_TTL, or ttl in the file, to no more than max_ttl";
        findings.fail(None, "settings", found, advice);
    }
}

fn count(nodes: usize, findings: &mut Findings) {
    let found = match nodes {
        1 => "one node is as good as one server is: a lock ends with it",
        2 => "two nodes are worse than one: both must vote",
        nodes if nodes % 2 == 0 => "an even number of nodes bears no more failures than one less",
        _ => return,
    };
    let advice = "use three or five independent masters";
    findings.warn(None, "count", found, advice);
}

fn quorum(nodes: usize, votes: usize, majority: usize, findings: &mut Findings) {
    if votes < majority {
        let found = format!(
            "{votes} of {nodes} nodes vote, and {majority} are needed: nothing can be locked"
        );
        let advice = "see to the nodes below, those first that need only time or an address";
        findings.fail(None, "quorum", found, advice);
    } else if votes == majority && nodes > 2 {
        let found =
            format!("{votes} of {nodes} nodes vote: with one more failure nothing can be locked");
        let advice = "restart nothing now, and see to the nodes below";
        findings.warn(None, "margin", found, advice);
    }
}

fn domains(places: &[ProbedNode], findings: &mut Findings) {
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    for place in places {
        let host = match place.info.as_ref().map(|info| info.addr()) {
            Some(ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. }) => host,
            Some(_) => "localhost",
            None => continue,
        };
        let host = if is_local(host) { "this machine" } else { host };
        *hosts.entry(host).or_default() += 1;
    }
    for (host, nodes) in hosts {
        if nodes > 1 {
            let found = format!("{nodes} nodes are on {host}, and fail together");
            if host == "this machine" {
                let advice = "fine for a try-out; in production, one machine each";
                findings.note(None, "failure-domains", found, advice);
            } else {
                let advice = "put each on a machine, a rack and a disk of its own";
                findings.warn(None, "failure-domains", found, advice);
            }
        }
    }
}

fn likeness(places: &[ProbedNode], facts: &[Option<Facts>], findings: &mut Findings) {
    let differ = |of: &dyn Fn(&Facts) -> String| {
        let mut values: Vec<String> = known(places, facts).map(|(_, facts)| of(facts)).collect();
        values.sort();
        values.dedup();
        (values.len() > 1).then(|| values.join(", "))
    };
    if let Some(versions) = differ(&|facts| facts.info.version()) {
        let found = format!("the nodes have different versions: {versions}");
        let advice = "bring them to one version, one node at a time: redlock roll";
        findings.warn(None, "mixed-versions", found, advice);
    }
    for (field, name) in [
        ("maxmemory", "maxmemory"),
        ("maxmemory_policy", "maxmemory-policy"),
        ("aof_enabled", "appendonly"),
        ("maxclients", "maxclients"),
    ] {
        if let Some(values) = differ(&|facts| facts.info.text(field).to_owned()) {
            let found = format!("the nodes differ in {name}: {values}");
            let advice =
                "give all of them one configuration: the weakest decides when a quorum is lost";
            findings.warn(None, "configuration", found, advice);
        }
    }
}

fn restarts(
    places: &[ProbedNode],
    facts: &[Option<Facts>],
    settings: &NodeSettings,
    findings: &mut Findings,
) {
    let quarantine = settings.quarantine();
    let is_recent = |facts: &Facts| facts.up().is_some_and(|up| up < quarantine);
    let recent = known(places, facts).filter(|(_, facts)| is_recent(facts));
    let names: Vec<&str> = recent.map(|(place, _)| &*place.name).collect();
    let waiting = names.iter().filter(|name| findings.has(name, "quarantine"));
    let (waiting, all) = (waiting.count(), places.len());
    let (nodes, time) = (names.len(), rounded(quarantine));
    if waiting == all {
        // Servers that keep nothing cannot tell these two apart.
        let found = format!("all nodes started within {time}: a first start, or all restarted");
        let advice = "if they are new, redlock bless; if not, wait, and from now on restart one at a time: redlock roll";
        findings.warn(None, "restarts", found, advice);
    } else if waiting > all - settings.majority() {
        let found = format!("{nodes} nodes restarted within {time}: more than a minority at once");
        let advice = "restart one node at a time, and the next one when it votes: redlock roll";
        findings.fail(None, "restarts", found, advice);
    }
}

fn guards(settings: &NodeSettings, findings: &mut Findings) {
    if settings.config.expert.verbatim_keys {
        let found = "verbatim keys may be locked by other clients too, which vote with a node that restarted without its \
                     keys";
        let advice =
            "delay the start of each node if there are any: redlock guide systemd --delayed";
        findings.note(None, "restart-guard", found, advice);
    }
}

/// Adds what keeps nodes from voting.
pub(super) fn check_votes(reports: &[NodeReport], findings: &mut Findings) {
    for NodeReport { node, answer, .. } in reports {
        let (level, check, words) = match answer {
            NodeAnswer::NotAVote { reason } => match reason {
                NotAVote::Quarantined { ready_in } => {
                    let left = rounded(*ready_in);
                    let words = format!(
                        "may have forgotten leases, and votes in {left} at the earliest; {QUARANTINED}"
                    );
                    (Severity::Warning, "quarantine", words)
                }
                NotAVote::Alone => (Severity::Note, "alone", reason.to_string()),
                _ => (Severity::Failure, check_of(reason), reason.to_string()),
            },
            NodeAnswer::Failing { reason } => (Severity::Failure, "writes", reason.to_string()),
            NodeAnswer::Unknown { reason } | NodeAnswer::NotExecuted { reason } => {
                (Severity::Failure, "reachable", reason.to_string())
            }
            _ => continue,
        };
        let unadvised = (&*words, "look at its process, its log and its address");
        // Words say what is wrong, and after a semicolon what to do.
        let (found, advice) = words.split_once("; ").unwrap_or(unadvised);
        findings.add(level, Some(node), check, found, advice);
    }
}

/// Returns the check that a reason belongs to.
fn check_of(reason: &NotAVote) -> &'static str {
    match reason {
        NotAVote::Clock => "clock",
        NotAVote::SameServer { .. } => "distinct-server",
        NotAVote::PolicyMismatch { .. } => "policy",
        NotAVote::Unfit(Unfit::Replica) => "role",
        NotAVote::Unfit(Unfit::HasReplicas) => "replicas",
        NotAVote::Unfit(Unfit::Cluster) => "cluster",
        NotAVote::Unfit(Unfit::Evicts { .. }) => "eviction",
        NotAVote::Unfit(Unfit::TooOld { .. }) => "version",
        NotAVote::Unfit(Unfit::NotPersistent | Unfit::SyncsLate { .. }) => "persistence",
        NotAVote::Unexamined => "reachable",
        _ => "votes",
    }
}

/// Adds the clocks that are off, or run at another rate than they may.
pub(super) fn check_clocks(
    clocks: &[(&Arc<str>, ClockFacts)],
    clock_rate_error: f64,
    findings: &mut Findings,
) {
    let Some(middle) = median(clocks.iter().map(|(_, clock)| clock.ahead)) else {
        return;
    };
    if middle.abs() > TOLERANCE {
        let off = seconds(-middle);
        let found = format!("this machine's clock is {off} from the nodes'");
        let advice =
            "synchronise this machine's clock; the nodes' clocks decide about ticks of jobs";
        findings.warn(None, "own-clock", found, advice);
    }
    for (node, clock) in clocks {
        let off = clock.ahead - middle;
        if off.abs() > TOLERANCE {
            // The client knows that it is off, and not by how much.
            let size = format!(": it is {} from them", seconds(off));
            findings.add_to_failure(node, "clock", &size);
        }
        if off.abs() > DRIFTING && !findings.has(node, "clock") {
            let found = format!("its clock is {} from the others'", seconds(off));
            let advice = "synchronise it; from 1 s on the node does not vote";
            findings.warn(Some(node), "clock", found, advice);
        }
        let least = clock.rate_error.abs() - clock.uncertainty;
        if least > clock_rate_error / 2.0 {
            let level = Severity::failure_if(least > clock_rate_error);
            let found = format!("its clock runs {:+.1} % off", clock.rate_error * 100.0);
            let advice =
                "stop what slews or steps it (chrony: maxslewrate); leases rest on its rate";
            findings.add(level, Some(node), "clock-rate", found, advice);
        }
    }
}

fn seconds(off: f64) -> String {
    if off.abs() < 1.0 {
        format!("{:+.0} ms", off * 1_000.0)
    } else {
        format!("{off:+.1} s")
    }
}

/// What to do about a quarantine.
const QUARANTINED: &str = "wait, while a client of the namespace is connected: redlock watch is one; if nothing can have been \
                           forgotten, redlock bless";
/// Clocks that differ by more have no vote.
const TOLERANCE: f64 = 1.0;
/// Clocks that are synchronised differ by less.
const DRIFTING: f64 = 0.25;
