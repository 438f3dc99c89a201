//! One server: its settings, its data on disk, and what to change there.

use std::time::Duration;

use redlock_core::{deadpool_redis::redis::ConnectionAddr, node::RedisNode};

use super::{
    facts::Facts,
    finding::{Findings, Severity},
    lines::unknown_commands,
};
use crate::look::{clock::rounded, probe::ProbedNode, settings::NodeSettings};

/// A server that was examined, and the findings.
struct Examined<'a> {
    place: &'a ProbedNode,
    facts: &'a Facts,
    settings: &'a NodeSettings,
    findings: &'a mut Findings,
}

/// Adds what is wrong with one server.
pub(super) fn check(
    place: &ProbedNode,
    facts: &Facts,
    settings: &NodeSettings,
    findings: &mut Findings,
) {
    let mut examined = Examined {
        place,
        facts,
        settings,
        findings,
    };
    examined.memory();
    examined.failures();
    examined.persistence();
    examined.data();
    examined.history();
    examined.replication();
    examined.rights();
    examined.limits();
    examined.stalls();
    security(place, findings);
}

impl Examined<'_> {
    fn add(
        &mut self,
        level: Severity,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let node = Some(&self.place.name);
        self.findings.add(level, node, check, found, advice);
    }

    fn warn(&mut self, check: &'static str, found: impl Into<String>, advice: impl Into<String>) {
        self.add(Severity::Warning, check, found, advice);
    }

    fn note(&mut self, check: &'static str, found: impl Into<String>, advice: impl Into<String>) {
        self.add(Severity::Note, check, found, advice);
    }

    fn fail(&mut self, check: &'static str, found: impl Into<String>, advice: impl Into<String>) {
        self.add(Severity::Failure, check, found, advice);
    }

    fn has(&self, check: &str) -> bool {
        self.findings.has(&self.place.name, check)
    }

    fn memory(&mut self) {
        let info = &self.facts.info;
        let number = |name: &str| info.number::<u64>(name).unwrap_or(0);
        let (used, limit) = (number("used_memory"), number("maxmemory"));
        let (limit, whose) = match limit {
            0 => (number("total_system_memory"), "the machine has"),
            limit => (limit, "its maxmemory allows"),
        };
        let percent = (used * 100).checked_div(limit).unwrap_or(0);
        if percent >= FULL {
            let found = format!("uses {percent} % of the memory that {whose}");
            let advice = "raise maxmemory or remove other data: a full node grants nothing";
            self.warn("memory", found, advice);
        }
        // The client looks at the policy once there is a limit, and takes the vote then.
        let policy = info.text("maxmemory_policy");
        if number("maxmemory") == 0 && !matches!(policy, "" | "noeviction") && !self.has("eviction")
        {
            let found = format!("would not vote if it had a maxmemory (maxmemory-policy {policy})");
            let advice = "set it to noeviction: a key that is dropped is a lock that two can hold";
            self.note("eviction", found, advice);
        }
        let evicted = number("evicted_keys");
        if evicted > 0 {
            let found = format!("has dropped {evicted} keys for lack of memory since it started");
            let advice = "keep maxmemory-policy noeviction, and restart it: a dropped key was a lock that two could hold";
            self.warn("evicted-keys", found, advice);
        }
    }

    fn history(&mut self) {
        let earlier = self.facts.info.text("master_replid2");
        // Sentinels and a Cluster promote replicas, and clients that ask them wait for longer after it.
        let may_be = self.place.follows_failovers || self.settings.is_best_effort();
        if !may_be && earlier.bytes().any(|digit| digit != b'0') {
            // Both take over the identity of other data (`master_replid2`), and nothing else tells one from the other.
            let found = "was a replica before, or restarted from a snapshot";
            let advice = "find out what promotes it, and turn that off, or else set save \"\": both a promoted replica and a snapshot have forgotten leases";
            self.warn("promoted", found, advice);
        }
    }

    /// Checks that a master keeps its vote when its last replica has gone, or all links to them are broken.
    fn replication(&mut self) {
        let Some(seconds @ 1..) = self.facts.backlog_ttl else {
            return;
        };
        if self.settings.is_best_effort() {
            // It votes again at once.
            return;
        }
        let info = &self.facts.info;
        let after = rounded(Duration::from_secs(seconds));
        let (found, advice) = if info.number("connected_slaves") > Some(0) {
            if !self.place.follows_failovers {
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
        self.warn("replicas", found, advice);
    }

    fn rights(&mut self) {
        let rights = &self.facts.rights;
        if rights.lacks_keys || !rights.missing.is_empty() {
            let user = user(self.place);
            let keys = self.settings.key_patterns();
            let missing = match &*rights.missing {
                // What commands it may run does not show before it may use the keys.
                [] => RedisNode::RIGHTS.to_owned(),
                missing => missing.join(" "),
            };
            let found = format!("its user {user} lacks rights that a client needs");
            let advice = format!("ACL SETUSER {user} {keys} {missing}");
            self.fail("rights", found, advice);
        } else if self.settings.config.expert.verbatim_keys {
            // Clients make no transactions then.
        } else if !rights.unknown_for_transactions.is_empty() {
            let (found, advice) = unknown_commands(&rights.unknown_for_transactions, COSTS);
            self.note("transactions", found, advice);
        } else if !rights.missing_for_transactions.is_empty() {
            let user = user(self.place);
            let missing = rights.missing_for_transactions.join(" ");
            let found = format!("its user {user} lacks rights without which {COSTS}");
            self.note(
                "transactions",
                found,
                format!("ACL SETUSER {user} {missing}"),
            );
        }
        // No client listens where replicas must have a grant.
        if self.settings.config.wait_for_replicas.is_none()
            && let Some((found, advice)) = rights.for_lines.finding(user(self.place))
        {
            self.warn("lines", found, advice);
        }
        if let Some(code) = rights.refuses_writes.as_deref()
            && !self.has("writes")
        {
            let found = format!("refuses to write {} ({code})", meaning(code));
            let advice = advice_on(code);
            self.fail("writes", found, advice);
        }
    }

    fn limits(&mut self) {
        let info = &self.facts.info;
        let number = |name: &str| info.number::<u64>(name).unwrap_or(0);
        let (connected, most) = (number("connected_clients"), number("maxclients"));
        if most > 0 && connected * 100 >= most * FULL {
            let found = format!("has {connected} of at most {most} connections");
            let advice = "raise maxclients, or close other connections: a client without a connection gets no vote";
            self.warn("clients", found, advice);
        }
        let rejected = number("rejected_connections");
        if rejected > 0 {
            let found = format!("has turned {rejected} connections away since it started");
            let advice = "raise maxclients, or find the program that opens most of them";
            self.warn("rejected-clients", found, advice);
        }
        let elsewhere = info.keys_elsewhere(self.place.database());
        if elsewhere > 0 {
            let found =
                format!("has {elsewhere} keys in other databases: something else uses it too");
            let advice = "give locks a server of their own: another's load, limits and FLUSHALL are theirs too";
            self.warn("shared", found, advice);
        }
    }

    fn stalls(&mut self) {
        let limit = self.settings.node_timeout();
        let times = [
            ("a round trip", &self.facts.round_trip),
            ("a script", &self.facts.script),
        ];
        for (what, times) in times {
            let p99 = times.percentile(99);
            if p99 > limit / 2 {
                let level = Severity::failure_if(times.percentile(50) > limit);
                let (p99, limit) = (rounded(p99), rounded(limit));
                let found =
                    format!("{what} takes up to {p99} (99 %), and its time limit is {limit}");
                let advice =
                    "find out what makes it slow, move it nearer, or raise node_timeout and ttl";
                self.add(level, "latency", found, advice);
                break;
            }
        }
        let fork = self.facts.info.number("latest_fork_usec").unwrap_or(0);
        let fork = Duration::from_micros(fork);
        if fork > limit / 2 {
            let found = format!("stood still for {} when it forked last", rounded(fork));
            let advice = "turn snapshots off (save \"\"), or give locks a server of their own";
            self.warn("fork", found, advice);
        }
        if let Some((took, ago)) = self.facts.slowest
            && took > limit / 2
            && ago < RECENT
        {
            let (took, ago) = (rounded(took), rounded(Duration::from_secs(ago.as_secs())));
            let found = format!("a command kept it busy for {took}, {ago} ago");
            let advice = "see SLOWLOG GET there, and give locks a server of their own";
            self.warn("slow-commands", found, advice);
        }
    }

    fn failures(&mut self) {
        let info = &self.facts.info;
        if info.text("loading") == "1" {
            let advice = "wait until it has loaded its data";
            self.fail("loading", "is loading its data", advice);
        }
        for (field, what) in [
            ("rdb_last_bgsave_status", "its last snapshot"),
            (
                "aof_last_write_status",
                "the last write to its append-only file",
            ),
            (
                "aof_last_bgrewrite_status",
                "the last rewrite of its append-only file",
            ),
        ] {
            if info.text(field) == "err" {
                let found = format!("{what} failed");
                let advice =
                    "see its log and its disk; a lock needs no snapshots: save \"\" turns them off";
                self.warn("disk", found, advice);
            }
        }
    }

    fn persistence(&mut self) {
        if self.settings.config.expert.dangerous_trust_persistence && self.facts.syncs.is_none() {
            let found = "dangerous_trust_persistence rests on appendfsync always, and it does not let that be asked";
            let advice = "allow +config|get, or make sure of appendfsync always yourself";
            self.warn("persistence", found, advice);
        }
    }

    /// Checks that a server keeps nothing on disk, unless that is trusted.
    fn data(&mut self) {
        let appends = self.facts.info.text("aof_enabled") == "1";
        let appends = appends.then(|| "appendonly yes".to_owned());
        let saves = self.facts.saves.iter().filter(|points| !points.is_empty());
        let saves = saves.map(|points| format!("save \"{points}\""));
        let kept: Vec<String> = appends.into_iter().chain(saves).collect();
        if self.settings.is_best_effort() {
            if kept.is_empty() {
                let found = "keeps nothing on disk: a restart forgets all leases";
                let advice =
                    "set appendonly yes, so that it forgets those of the last second at the most";
                self.note("persistence", found, advice);
            }
            return;
        }
        if kept.is_empty() {
            return;
        }
        let kept = kept.join(", ");
        if !self.settings.config.expert.dangerous_trust_persistence {
            let found = format!(
                "keeps its data on disk ({kept}), and is quarantined after a restart all the same"
            );
            let advice = "set appendonly no and save \"\": leases that have ended come back from a disk, and those that run may not";
            self.note("persistence", found, advice);
        }
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

fn security(place: &ProbedNode, findings: &mut Findings) {
    let Some(info) = &place.info else {
        return;
    };
    let (host, is_tls) = match info.addr() {
        ConnectionAddr::Tcp(host, _) => (host, false),
        ConnectionAddr::TcpTls { host, .. } => (host, true),
        _ => return,
    };
    if is_local(host) {
        return;
    }
    if info.redis_settings().password().is_none() {
        let found = "is reached over the network without a password";
        let advice = "give locks a user of their own with ACL SETUSER";
        findings.warn(Some(&place.name), "credentials", found, advice);
    } else if user(place) == "default" {
        let found = "is reached as the default user, which may do everything";
        let advice = "give locks a user of their own with ACL SETUSER";
        findings.note(Some(&place.name), "credentials", found, advice);
    }
    if !is_tls {
        let found = "is reached over the network without TLS";
        let advice = "use rediss:// unless the network is yours alone";
        findings.note(Some(&place.name), "plaintext", found, advice);
    }
}

/// Returns whether a host is this machine.
pub(super) fn is_local(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip = host.parse::<std::net::IpAddr>();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

fn user(place: &ProbedNode) -> &str {
    let info = place.info.as_ref();
    info.and_then(|info| info.redis_settings().username())
        .unwrap_or("default")
}

const COSTS: &str = "most calls cost the server three times as much";

/// The percentage from which a resource counts as full.
const FULL: u64 = 85;
/// Slow commands from before say little of today.
const RECENT: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redlock_core::{NodeConfig, Redlock};

    use super::{Findings, ProbedNode, is_local, security};

    #[tokio::test]
    async fn what_is_encrypted_is_not_called_plain() {
        let of = async |url: &str| {
            let located = NodeConfig::from(url)
                .locate("redlock", Duration::ZERO)
                .await;
            let place = ProbedNode {
                name: "node".into(),
                follows_failovers: false,
                keys: Redlock::builder().node_keys().unwrap(),
                info: located.ok(),
                probe: Err(String::new()),
            };
            let mut findings = Findings::default();
            security(&place, &mut findings);
            let checks: Vec<_> = findings
                .0
                .iter()
                .map(|finding| finding.check.clone())
                .collect();
            checks
        };
        assert_eq!(of("redis://10.0.0.1").await, ["credentials", "plaintext"]);
        assert_eq!(
            of("redis://:pw@10.0.0.1").await,
            ["credentials", "plaintext"]
        );
        assert_eq!(of("redis://lock:pw@10.0.0.1").await, ["plaintext"]);
        assert_eq!(of("rediss://lock:pw@10.0.0.1").await, [""; 0]);
        assert_eq!(of("redis://127.0.0.1").await, [""; 0]);
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
