//! The nodes as a set: how many there are, how many vote, and what they have in common.

use std::{collections::BTreeMap, time::Duration};

use redlock_core::deadpool_redis::redis::ConnectionAddr;

use super::{
    facts::{Facts, known},
    finding::{Findings, Level},
    server::is_local,
};
use crate::{connection::Settings, output::rounded, probe::Place};

/// Adds what is wrong with the nodes together.
pub(super) fn check(
    places: &[Place],
    facts: &[Option<Facts>],
    votes: usize,
    settings: &Settings,
    findings: &mut Findings,
) {
    refused(settings, findings);
    count(places.len(), findings);
    quorum(places.len(), votes, settings.majority(), findings);
    domains(places, findings);
    likeness(places, facts, findings);
    restarts(places, facts, settings, findings);
    guards(settings, findings);
}

/// Checks that a service can start with these settings; the command itself takes a shorter ttl.
fn refused(settings: &Settings, findings: &mut Findings) {
    if let Some(why) = settings.refused() {
        let found = format!("no service can start with these settings: {why}");
        let advice = "set REDLOCK_TTL, or ttl in the file, to no more than max_ttl";
        findings.over_all(Level::Failure, "settings", found, advice);
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
    findings.over_all(Level::Warning, "count", found, advice);
}

fn quorum(nodes: usize, votes: usize, majority: usize, findings: &mut Findings) {
    if votes < majority {
        findings.over_all(
            Level::Failure,
            "quorum",
            format!(
                "{votes} of {nodes} nodes vote, and {majority} are needed: nothing can be locked"
            ),
            "see to the nodes below, those first that need only time or an address",
        );
    } else if votes == majority && nodes > 2 {
        findings.over_all(
            Level::Warning,
            "margin",
            format!("{votes} of {nodes} nodes vote: with one more failure nothing can be locked"),
            "restart nothing now, and see to the nodes below",
        );
    }
}

fn domains(places: &[Place], findings: &mut Findings) {
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
            let (level, advice) = if host == "this machine" {
                (
                    Level::Note,
                    "fine for a try-out; in production, one machine each",
                )
            } else {
                (
                    Level::Warning,
                    "put each on a machine, a rack and a disk of its own",
                )
            };
            let found = format!("{nodes} nodes are on {host}, and fail together");
            findings.over_all(level, "failure-domains", found, advice);
        }
    }
}

fn likeness(places: &[Place], facts: &[Option<Facts>], findings: &mut Findings) {
    let differ = |of: &dyn Fn(&Facts) -> String| {
        let mut values: Vec<String> = known(places, facts).map(|(.., facts)| of(facts)).collect();
        values.sort();
        values.dedup();
        (values.len() > 1).then(|| values.join(", "))
    };
    if let Some(versions) = differ(&|facts| facts.info.version()) {
        findings.over_all(
            Level::Warning,
            "mixed-versions",
            format!("the nodes have different versions: {versions}"),
            "bring them to one version, one node at a time: redlock roll",
        );
    }
    for (field, name) in [
        ("maxmemory", "maxmemory"),
        ("maxmemory_policy", "maxmemory-policy"),
        ("aof_enabled", "appendonly"),
        ("maxclients", "maxclients"),
    ] {
        if let Some(values) = differ(&|facts| facts.info.text(field).to_owned()) {
            findings.over_all(
                Level::Warning,
                "configuration",
                format!("the nodes differ in {name}: {values}"),
                "give all of them one configuration: the weakest decides when a quorum is lost",
            );
        }
    }
}

fn restarts(
    places: &[Place],
    facts: &[Option<Facts>],
    settings: &Settings,
    findings: &mut Findings,
) {
    let quarantine = settings.quarantine();
    let up = |facts: &Facts| {
        let seconds = facts.info.number("uptime_in_seconds");
        seconds.map(Duration::from_secs)
    };
    let recent =
        known(places, facts).filter(|(.., facts)| up(facts).is_some_and(|up| up < quarantine));
    let names: Vec<&str> = recent.map(|(name, ..)| &**name).collect();
    let waiting = names
        .iter()
        .filter(|name| findings.has(name, "quarantine"))
        .count();
    if waiting > places.len() - settings.majority() {
        findings.over_all(
            Level::Failure,
            "restarts",
            format!(
                "{} nodes restarted within {}: more than a minority at once",
                names.len(),
                rounded(quarantine)
            ),
            "restart one node at a time, and the next one when it votes: redlock roll",
        );
    }
}

fn guards(settings: &Settings, findings: &mut Findings) {
    let config = &settings.config;
    if config.expert.dangerous_trust_delayed_restarts {
        let absence = rounded(settings.policy().trusting_delayed_restarts().absence());
        findings.over_all(
            Level::Note,
            "restart-guard",
            format!("dangerous_trust_delayed_restarts is set: each node must stay away for {absence} whenever it stops, and no doctor can see that"),
            "have the same unit on every node: redlock guide systemd --delayed",
        );
    } else if config.expert.verbatim_keys {
        findings.over_all(
            Level::Note,
            "restart-guard",
            "verbatim keys may be locked by other clients too, which vote with a node that restarted without its keys",
            "delay the start of each node if there are any: redlock guide systemd --delayed",
        );
    }
}
