//! Managed services, which are recognised by the names of their hosts, and Active-Active databases, by what `INFO` says.

use std::collections::BTreeSet;

use redlock_core::deadpool_redis::redis::ConnectionAddr;

use super::{
    facts::{Facts, known},
    finding::Findings,
};
use crate::look::probe::ProbedNode;

/// A service, how its hosts are named, and what matters most to a lock there.
struct Service {
    name: &'static str,
    /// Ends of host names; before a `*`, a part that comes earlier.
    hosts: &'static [&'static str],
    matters: &'static str,
}

/// Adds a note for each service that has a node, and a failure for each node that is a part of an Active-Active database.
pub(super) fn check(places: &[ProbedNode], facts: &[Option<Facts>], findings: &mut Findings) {
    let services: BTreeSet<usize> = places.iter().filter_map(service_of).collect();
    for service in services.into_iter().map(|index| &SERVICES[index]) {
        let found = format!("{}: {}", service.name, service.matters);
        findings.note(None, CHECK, found, READ_ON);
    }
    for (place, facts) in known(places, facts) {
        if !facts.info.text(ACTIVE_ACTIVE).is_empty() {
            let found =
                "is a part of an Active-Active database, whose regions grant one lock twice";
            findings.fail(Some(&place.name), CHECK, found, READ_ON);
        }
    }
}

/// Returns the place in the table of the service that the node's URL, or the server to which it leads, is of.
fn service_of(place: &ProbedNode) -> Option<usize> {
    let server = match place.info.as_ref().map(|info| info.addr()) {
        Some(ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. }) => host,
        _ => "",
    };
    [host_of(&place.name), server].into_iter().find_map(named)
}

/// Returns the place in the table of the first service that has this host.
fn named(host: &str) -> Option<usize> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let has = |pattern: &&str| {
        let (earlier, end) = pattern.split_once('*').unwrap_or(("", pattern));
        let rest = host.strip_suffix(end);
        rest.is_some_and(|rest| !rest.is_empty() && rest.contains(earlier))
    };
    SERVICES
        .iter()
        .position(|service| service.hosts.iter().any(has))
}

/// Returns the host in the name of a node, such as `c1` in `2of3@c1:6379`.
fn host_of(name: &str) -> &str {
    let address = name.rsplit('@').next().unwrap_or(name);
    address.split([':', '/']).next().unwrap_or(address)
}

const CHECK: &str = "managed";
const READ_ON: &str = "read docs/managed.md";
/// A field that only Active-Active databases have, by
/// <https://redis.io/docs/latest/operate/rs/databases/active-active/develop/develop-for-aa/#info>.
const ACTIVE_ACTIVE: &str = "crdt_config_version";

const SERVICES: [Service; 10] = [
    Service {
        name: "ElastiCache Serverless",
        hosts: &[".serverless.*.cache.amazonaws.com"],
        matters: "its maxmemory-policy drops keys, and cannot be changed",
    },
    Service {
        name: "ElastiCache",
        hosts: &[".cache.amazonaws.com", ".cache.amazonaws.com.cn"],
        matters: "its default maxmemory-policy drops keys, and a failover may forget leases",
    },
    Service {
        name: "MemoryDB",
        hosts: &[".memorydb.*.amazonaws.com", ".memorydb.*.amazonaws.com.cn"],
        matters: "it is a Cluster: its URL begins with rediss+cluster://",
    },
    Service {
        name: "Azure Managed Redis",
        hosts: &[".redis.azure.net"],
        matters: "by its documentation scripts may not call INFO, and without that it does not vote",
    },
    Service {
        name: "Azure Cache for Redis",
        hosts: &[".redis.cache.windows.net"],
        matters: "its default maxmemory-policy drops keys, and a failover may forget leases",
    },
    Service {
        name: "OCI Cache",
        hosts: &[".redis.*.oci.oraclecloud.com"],
        matters: "by its documentation a sharded cluster runs no scripts, and without them it does not vote",
    },
    Service {
        name: "Upstash",
        hosts: &[".upstash.io"],
        matters: "a failover may forget leases, and an idle client sends a command each second, which may cost money: set REDLOCK_HEARTBEAT",
    },
    Service {
        name: "Redis Cloud",
        hosts: &[".redislabs.com", ".redis-cloud.com", ".rlrcp.com"],
        matters: "by its documentation scripts may not call INFO, and without that it does not vote; an Active-Active database would grant one lock twice",
    },
    Service {
        name: "Aiven",
        hosts: &[".aivencloud.com"],
        matters: "a failover may forget leases",
    },
    Service {
        name: "DigitalOcean",
        hosts: &[".db.ondigitalocean.com"],
        matters: "a failover may forget leases",
    },
];

#[cfg(test)]
mod tests {
    use redlock_core::Redlock;

    use super::{Findings, ProbedNode, SERVICES, check, host_of, named};

    fn service(host: &str) -> Option<&'static str> {
        named(host).map(|index| SERVICES[index].name)
    }

    #[test]
    fn services_are_known_by_their_hosts() {
        for (host, name) in [
            (
                "x-a1b2c3.serverless.use1.cache.amazonaws.com",
                "ElastiCache Serverless",
            ),
            ("master.x.a1b2c3.euw1.cache.amazonaws.com", "ElastiCache"),
            (
                "clustercfg.x.a1b2c3.euw1.cache.amazonaws.com",
                "ElastiCache",
            ),
            (
                "clustercfg.x.a1b2c3.memorydb.eu-west-1.amazonaws.com",
                "MemoryDB",
            ),
            ("x.westeurope.redis.azure.net", "Azure Managed Redis"),
            ("X.redis.cache.windows.net.", "Azure Cache for Redis"),
            ("a1-p.redis.us-ashburn-1.oci.oraclecloud.com", "OCI Cache"),
            ("eu1-x-12345.upstash.io", "Upstash"),
            (
                "redis-10000.c1.us-east-1-2.ec2.redns.redis-cloud.com",
                "Redis Cloud",
            ),
            (
                "redis-10000.c1.us-east-1-2.ec2.cloud.redislabs.com",
                "Redis Cloud",
            ),
            (
                "redis-10000.mc1-0.us-east-1-mz.ec2.cloud.rlrcp.com",
                "Redis Cloud",
            ),
            ("x-project.a.aivencloud.com", "Aiven"),
            (
                "db-redis-fra1-1-do-user-1-0.b.db.ondigitalocean.com",
                "DigitalOcean",
            ),
        ] {
            assert_eq!(service(host), Some(name), "{host}");
        }
    }

    #[test]
    fn other_hosts_are_of_no_service() {
        for host in [
            "localhost",
            "10.0.0.1",
            "upstash.io",
            ".upstash.io",
            "upstash.io.example.com",
            "notupstash.io",
            "x.rds.eu-west-1.amazonaws.com",
            "memorydb.example.com",
            "x.oci.oraclecloud.com",
            "",
        ] {
            assert_eq!(service(host), None, "{host}");
        }
    }

    #[test]
    fn each_service_is_noted_once() {
        let place = |name: &str| ProbedNode {
            name: name.into(),
            follows_failovers: false,
            keys: Redlock::builder().node_keys().unwrap(),
            info: None,
            probe: Err(String::new()),
        };
        let cluster = "@clustercfg.x.a1b2c3.memorydb.eu-west-1.amazonaws.com:6379";
        let mut places: Vec<_> = (1..=3)
            .map(|vote| place(&format!("{vote}of3{cluster}")))
            .collect();
        places.push(place("x-a1b2c3.serverless.use1.cache.amazonaws.com:6379"));
        places.push(place("127.0.0.1:6379"));
        let mut findings = Findings::default();
        check(&places, &[], &mut findings);
        let found = findings.0.iter().map(|finding| &*finding.found);
        let [serverless, memorydb] = found.collect::<Vec<_>>()[..] else {
            panic!("{findings:?}");
        };
        assert!(serverless.starts_with("ElastiCache Serverless: "));
        assert!(memorydb.starts_with("MemoryDB: "));
    }

    #[test]
    fn names_of_nodes_have_hosts() {
        for name in ["c1:6379", "2of3@c1:6379", "orders@c1:26379", "c1:6379/2"] {
            assert_eq!(host_of(name), "c1", "{name}");
        }
        assert_eq!(host_of("/run/redis.sock"), "");
    }
}
