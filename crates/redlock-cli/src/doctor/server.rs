//! The settings of one server, and what to change there.

use std::{sync::Arc, time::Duration};

use super::{
    disk,
    facts::Facts,
    finding::{Findings, Level},
};
use crate::{connection::Settings, output::rounded, probe::Place};
use redlock_core::node::RedisNode;

/// Adds what is wrong with one server.
pub(super) fn check(
    node: &Arc<str>,
    place: &Place,
    facts: &Facts,
    settings: &Settings,
    findings: &mut Findings,
) {
    memory(node, facts, findings);
    disk::check(node, facts, settings, findings);
    history(node, facts, findings);
    replication(node, facts, settings, findings);
    rights(node, place, facts, settings, findings);
    limits(node, place, facts, findings);
    stalls(node, facts, settings, findings);
    security(node, place, findings);
}

fn memory(node: &Arc<str>, facts: &Facts, findings: &mut Findings) {
    let info = &facts.info;
    let number = |name: &str| info.number::<u64>(name).unwrap_or(0);
    let (used, limit) = (number("used_memory"), number("maxmemory"));
    let (limit, whose) = match limit {
        0 => (number("total_system_memory"), "the machine has"),
        limit => (limit, "its maxmemory allows"),
    };
    let percent = (used * 100).checked_div(limit).unwrap_or(0);
    if percent >= FULL {
        findings.at(
            node,
            Level::Warning,
            "memory",
            format!("uses {percent} % of the memory that {whose}"),
            "raise maxmemory or remove other data: a full node grants nothing",
        );
    }
    // The client looks at the policy once there is a limit, and takes the vote then.
    let policy = info.text("maxmemory_policy");
    if number("maxmemory") == 0
        && !matches!(policy, "" | "noeviction")
        && !findings.has(node, "eviction")
    {
        findings.at(
            node,
            Level::Note,
            "eviction",
            format!("would not vote if it had a maxmemory (maxmemory-policy {policy})"),
            "set it to noeviction: a key that is dropped is a lock that two can hold",
        );
    }
    let evicted = number("evicted_keys");
    if evicted > 0 {
        findings.at(
            node,
            Level::Warning,
            "evicted-keys",
            format!("has dropped {evicted} keys for lack of memory since it started"),
            "keep maxmemory-policy noeviction, and restart it: a dropped key was a lock that two could hold",
        );
    }
}

fn history(node: &Arc<str>, facts: &Facts, findings: &mut Findings) {
    let earlier = facts.info.text("master_replid2");
    if earlier.bytes().any(|digit| digit != b'0') {
        findings.at(
            node,
            Level::Warning,
            "promoted",
            // Both take over the identity of other data (`master_replid2`), and nothing else tells one from the other.
            "was a replica before, or restarted from a snapshot",
            "find out what promotes it, and turn that off, or else set save \"\": both a promoted replica and a snapshot have forgotten leases",
        );
    }
}

/// Checks that a master keeps its vote when its last replica has gone, or all links to them are broken.
fn replication(node: &Arc<str>, facts: &Facts, settings: &Settings, findings: &mut Findings) {
    let Some(seconds @ 1..) = facts.backlog_ttl else {
        return;
    };
    let info = &facts.info;
    let after = rounded(Duration::from_secs(seconds));
    let (found, advice) = if info.number("connected_slaves") > Some(0) {
        if !settings.config.expert.accept_replicas {
            // It does not vote.
            return;
        }
        (
            format!(
                "loses its vote {after} after its link to the last replica breaks (repl-backlog-ttl)"
            ),
            "set repl-backlog-ttl 0: a broken link to all replicas would take all votes at once",
        )
    } else if info.text("role") == "master" && info.text("repl_backlog_active") == "1" {
        (
            format!(
                "loses its vote within {after} of its last replica's leaving (repl-backlog-ttl)"
            ),
            "set repl-backlog-ttl 0, or remove no replica of another master before this one has lost its vote and votes again",
        )
    } else {
        return;
    };
    findings.at(node, Level::Warning, "replicas", found, advice);
}

fn rights(
    node: &Arc<str>,
    place: &Place,
    facts: &Facts,
    settings: &Settings,
    findings: &mut Findings,
) {
    let rights = &facts.rights;
    if rights.lacks_keys || !rights.missing.is_empty() {
        let user = user(place);
        let keys = settings.key_patterns();
        let missing = match &*rights.missing {
            // What commands it may run does not show before it may use the keys.
            [] => RedisNode::RIGHTS.to_owned(),
            missing => missing.join(" "),
        };
        findings.at(
            node,
            Level::Failure,
            "rights",
            format!("its user {user} lacks rights that a client needs"),
            format!("ACL SETUSER {user} {keys} {missing}"),
        );
    }
    if let Some(code) = rights.refuses_writes.as_deref()
        && !findings.has(node, "writes")
    {
        findings.at(
            node,
            Level::Failure,
            "writes",
            format!("refuses to write {} ({code})", meaning(code)),
            advice_on(code),
        );
    }
}

fn meaning(code: &str) -> &'static str {
    match code {
        "OOM" => "because its memory is full",
        "NOREPLICAS" => "without replicas",
        "READONLY" => "because it is a replica",
        "MISCONF" => "because it cannot save its data to disk",
        _ => "for a reason of its own",
    }
}

fn advice_on(code: &str) -> &'static str {
    match code {
        "OOM" => "give it more memory, or remove other data there",
        "NOREPLICAS" => "set min-replicas-to-write to 0: nodes need no replicas",
        "READONLY" => "give the address of a master that nothing else replaces",
        "MISCONF" => {
            "see its log and its disk; a lock needs no snapshots: save \"\" turns them off"
        }
        _ => "see its log",
    }
}

fn limits(node: &Arc<str>, place: &Place, facts: &Facts, findings: &mut Findings) {
    let info = &facts.info;
    let number = |name: &str| info.number::<u64>(name).unwrap_or(0);
    let (connected, most) = (number("connected_clients"), number("maxclients"));
    if most > 0 && connected * 100 >= most * FULL {
        findings.at(
            node,
            Level::Warning,
            "clients",
            format!("has {connected} of at most {most} connections"),
            "raise maxclients, or close others: who gets no connection gets no vote",
        );
    }
    let rejected = number("rejected_connections");
    if rejected > 0 {
        findings.at(
            node,
            Level::Warning,
            "rejected-clients",
            format!("has turned {rejected} connections away since it started"),
            "raise maxclients, or find out who opens so many",
        );
    }
    let database = place
        .info
        .as_ref()
        .map_or(0, |info| info.redis_settings().db());
    let elsewhere = info.keys_elsewhere(database);
    if elsewhere > 0 {
        findings.at(
            node,
            Level::Warning,
            "shared",
            format!("has {elsewhere} keys in other databases: something else uses it too"),
            "give locks a server of their own: another's load, limits and FLUSHALL are theirs too",
        );
    }
}

fn stalls(node: &Arc<str>, facts: &Facts, settings: &Settings, findings: &mut Findings) {
    let limit = settings.node_timeout();
    let times = [
        ("a round trip", &facts.round_trip),
        ("a script", &facts.script),
    ];
    for (what, times) in times {
        let p99 = times.percentile(99);
        if p99 > limit / 2 {
            let level = if times.percentile(50) > limit {
                Level::Failure
            } else {
                Level::Warning
            };
            findings.at(
                node,
                level,
                "latency",
                format!(
                    "{what} takes up to {} (99 %), and its time limit is {}",
                    rounded(p99),
                    rounded(limit)
                ),
                "find out what makes it slow, move it nearer, or raise node_timeout and ttl",
            );
            break;
        }
    }
    let fork = facts.info.number("latest_fork_usec").unwrap_or(0);
    let fork = Duration::from_micros(fork);
    if fork > limit / 2 {
        findings.at(
            node,
            Level::Warning,
            "fork",
            format!("stood still for {} when it forked last", rounded(fork)),
            "turn snapshots off (save \"\"), or give locks a server of their own",
        );
    }
    if let Some((took, ago)) = facts.slowest
        && took > limit / 2
        && ago < RECENT
    {
        findings.at(
            node,
            Level::Warning,
            "slow-commands",
            format!(
                "a command kept it busy for {}, {} ago",
                rounded(took),
                rounded(Duration::from_secs(ago.as_secs()))
            ),
            "see SLOWLOG GET there, and give locks a server of their own",
        );
    }
}

fn security(node: &Arc<str>, place: &Place, findings: &mut Findings) {
    let Some(info) = &place.info else {
        return;
    };
    let (host, is_tls) = match info.addr() {
        redlock_core::deadpool_redis::redis::ConnectionAddr::Tcp(host, _) => (host, false),
        redlock_core::deadpool_redis::redis::ConnectionAddr::TcpTls { host, .. } => (host, true),
        _ => return,
    };
    if is_local(host) {
        return;
    }
    if info.redis_settings().password().is_none() {
        findings.at(
            node,
            Level::Warning,
            "credentials",
            "is reached over the network without a password",
            "give locks a user of their own with ACL SETUSER",
        );
    } else if user(place) == "default" {
        findings.at(
            node,
            Level::Note,
            "credentials",
            "is reached as the default user, who may do everything",
            "give locks a user of their own with ACL SETUSER",
        );
    }
    if !is_tls {
        findings.at(
            node,
            Level::Note,
            "plaintext",
            "is reached over the network without TLS",
            "use rediss:// unless the network is yours alone",
        );
    }
}

/// Returns whether a host is this machine.
pub(super) fn is_local(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip = host.parse::<std::net::IpAddr>();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

fn user(place: &Place) -> &str {
    let info = place.info.as_ref();
    info.and_then(|info| info.redis_settings().username())
        .unwrap_or("default")
}

/// The percentage from which a resource counts as full.
const FULL: u64 = 85;
/// Slow commands from before say little of today.
const RECENT: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests {
    use super::{Findings, Place, is_local, security};

    #[test]
    fn what_is_encrypted_is_not_called_plain() {
        let of = |url: &str| {
            let place = Place {
                name: "node".into(),
                info: redlock_core::NodeConfig::from(url).connection_info(),
                probe: Err(String::new()),
            };
            let mut findings = Findings::default();
            security(&place.name, &place, &mut findings);
            let checks: Vec<_> = findings.0.iter().map(|finding| finding.check).collect();
            checks
        };
        assert_eq!(of("redis://10.0.0.1"), ["credentials", "plaintext"]);
        assert_eq!(of("redis://:pw@10.0.0.1"), ["credentials", "plaintext"]);
        assert_eq!(of("redis://lock:pw@10.0.0.1"), ["plaintext"]);
        #[cfg(feature = "tls-rustls")]
        assert_eq!(of("rediss://lock:pw@10.0.0.1"), [""; 0]);
        assert_eq!(of("redis://127.0.0.1"), [""; 0]);
    }

    #[test]
    fn this_machine_is_no_network() {
        for local in ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"] {
            assert!(is_local(local), "{local}");
        }
        for remote in ["10.0.0.1", "redis-1", "::2", "127.example.com"] {
            assert!(!is_local(remote), "{remote}");
        }
    }
}
