use std::{
    fs,
    net::{TcpListener, TcpStream},
    process::Command,
};

use redlock_sandbox::{ServerBinary, ServerOptions};

use crate::kit::{Nodes, Relay, Running, eventually};

#[tokio::test]
async fn replicas_and_masters_with_replicas_do_not_vote_and_a_promotion_is_noticed() {
    let nodes = Nodes::blessed(4).await;
    let (port, urls) = (nodes[3].port().to_string(), nodes.urls());
    nodes.ask(2, &["REPLICAOF", "127.0.0.1", &port]);
    let examined = nodes.doctor(&[]);
    examined.one(
        "role",
        &format!("failure … {} … it is a replica", nodes[2].address()),
    );
    let replicas = examined.found("replicas");
    assert!(
        replicas
            .iter()
            .all(|line| line.contains("redis+sentinel://")),
        "{replicas:?}"
    );

    let nodes = nodes.at(urls);
    nodes.ask(2, &["REPLICAOF", "NO", "ONE"]);
    let examined = nodes.doctor(&[]);
    examined.one(
        "promoted",
        &format!(
            "warning … {} … was a replica before … what promotes it",
            nodes[2].address()
        ),
    );
}

/// A snapshot has the identity of the data that it is of, as a promoted replica has.
#[tokio::test]
async fn a_master_that_restarted_from_a_snapshot_is_not_said_to_have_been_a_replica() {
    let mut nodes = Nodes::blessed(4).await;
    let port = nodes[0].port().to_string();
    nodes.ask(3, &["REPLICAOF", "127.0.0.1", &port]);
    eventually("the replica is connected", || {
        nodes
            .ask(0, &["INFO", "replication"])
            .contains("state=online")
    });
    nodes.ask(3, &["REPLICAOF", "NO", "ONE"]);
    nodes.ask(0, &["SAVE"]);
    nodes[0].restart().unwrap();
    let three = nodes.urls().into_iter().take(3).collect();
    let nodes = nodes.at(three);
    let examined = nodes.doctor(&[]);
    examined.one(
        "promoted",
        &format!(
            "warning … {} … was a replica before, or restarted from a snapshot … save \"\"",
            nodes[0].address()
        ),
    );
}

#[tokio::test]
async fn a_master_that_has_a_replica_is_told_so() {
    let nodes = Nodes::blessed(4).await;
    let port = nodes[0].port().to_string();
    nodes.ask(3, &["REPLICAOF", "127.0.0.1", &port]);
    eventually("the replica is connected", || {
        nodes
            .ask(0, &["INFO", "replication"])
            .contains("state=online")
    });
    let three = nodes.urls().into_iter().take(3).collect();
    let nodes = nodes.at(three);
    let examined = nodes.doctor(&[]);
    examined.one("replicas", "failure … it has replicas … redis+sentinel://");
    assert_eq!(examined.code, 2);
}

/// The last one to go takes the vote along, later; by then, the same may be so of other masters.
#[tokio::test]
async fn a_master_whose_replicas_have_gone_is_told_what_that_costs_and_when() {
    let nodes = Nodes::blessed(4).await;
    let port = nodes[0].port().to_string();
    nodes.ask(3, &["REPLICAOF", "127.0.0.1", &port]);
    let replication = || nodes.ask(0, &["INFO", "replication"]);
    eventually("the replica is connected", || {
        replication().contains("state=online")
    });
    nodes.ask(3, &["REPLICAOF", "NO", "ONE"]);
    eventually("the replica has gone", || {
        replication().contains("connected_slaves:0")
    });
    // It forked for the replica, and on a busy machine the doctor says how long that took.
    nodes.ask(0, &["CONFIG", "RESETSTAT"]);
    // The first one to come took the vote too.
    nodes.bless().await;
    let three = nodes.urls().into_iter().take(3).collect();
    let nodes = nodes.at(three);
    let node = nodes[0].address().to_string();
    let examined = nodes.doctor(&["--strict"]);
    examined.one("replicas", &format!("warning … {node} … loses its vote within 1 h of its last replica's leaving … repl-backlog-ttl 0"));
    assert_eq!((examined.code, &examined.json["votes"]), (1, &3.into()));
    nodes.set(0, "repl-backlog-ttl", "0");
    let examined = nodes.doctor(&["--strict"]);
    assert!(examined.found("replicas").is_empty(), "{examined:?}");
    assert_eq!(examined.code, 0, "{examined:?}");
}

#[tokio::test]
async fn a_part_of_a_cluster_is_no_node() {
    let cluster = Nodes::start_with(
        1,
        &ServerOptions::default()
            .argument("--cluster-enabled")
            .argument("yes"),
    );
    let nodes = Nodes::blessed(3).await;
    let mut urls = nodes.urls();
    urls[1] = cluster[0].url();
    let nodes = nodes.at(urls);
    let examined = nodes.doctor(&[]);
    let words: Vec<_> = ["cluster", "reachable"]
        .iter()
        .flat_map(|check| examined.found(check))
        .collect();
    assert!(
        words
            .iter()
            .any(|line| line.contains("it is part of a cluster")),
        "{examined:?}"
    );
    assert_eq!(examined.code, 2);
}

#[tokio::test]
async fn a_sentinel_is_no_node() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sentinel.conf");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let nodes = Nodes::blessed(3).await;
    let master = nodes[0].port();
    let text = format!(
        "bind 127.0.0.1\nport {}\nsentinel monitor locks 127.0.0.1 {master} 1\n",
        address.port()
    );
    fs::write(&file, text).unwrap();
    let binary = ServerBinary::find().unwrap();
    let mut command = Command::new(binary.path());
    let _sentinel = Running::start(command.arg(&file).arg("--sentinel").current_dir(&folder));
    eventually("it listens", || TcpStream::connect(address).is_ok());
    let mut urls = nodes.urls();
    urls[0] = format!("redis://{address}");
    let examined = nodes.at(urls).doctor(&[]);
    let found = examined.found("reachable").concat();
    assert!(found.contains("it is a Sentinel"), "{examined:?}");
    assert!(found.contains("redis+sentinel://"), "{found}");
    assert_eq!(examined.code, 2);
}

#[tokio::test]
async fn one_server_under_two_addresses_is_an_illusion_of_two() {
    let options = ServerOptions::default()
        .argument("--bind")
        .argument("127.0.0.1")
        .argument("127.0.0.2");
    let nodes = Nodes::start_with(3, &options);
    nodes.bless().await;
    let twin = nodes[0].url().replace("127.0.0.1", "127.0.0.2");
    let mut urls = nodes.urls();
    urls[1] = twin;
    let nodes = nodes.at(urls);
    let examined = nodes.doctor(&[]);
    examined.one(
        "distinct-server",
        "failure … the same server as nodes[0] … a server of its own",
    );
    assert_eq!(examined.json["votes"], 2);
}

#[tokio::test]
async fn a_version_that_is_too_old_is_told_of() {
    let nodes = Nodes::blessed(3).await;
    let version = nodes.ask(0, &["INFO", "server"]);
    let version = version
        .lines()
        .find(|line| line.starts_with("redis_version:"))
        .unwrap();
    let from = version.trim();
    // Of the same length, whatever the version is.
    let to = format!("redis_version:5.0.{}", &from["redis_version:".len() + 4..]);
    let old = Relay::replacing(nodes[2].address(), from, &to);
    let mut urls = nodes.urls();
    urls[2] = old.url();
    let nodes = nodes.at(urls);
    let examined = nodes.doctor(&[]);
    examined.one("version", "failure … 5.0 is too old");
    assert_eq!(examined.code, 2);
}

#[tokio::test]
async fn different_versions_are_told_of() {
    let nodes = Nodes::blessed(3).await;
    let info = nodes.ask(0, &["INFO", "server"]);
    // Valkey says both, and goes by its own.
    let named = |name: &str| info.lines().find(|line| line.starts_with(name));
    let version = named("valkey_version:")
        .or_else(|| named("redis_version:"))
        .unwrap()
        .trim();
    let (rest, last) = version.split_at(version.len() - 1);
    let other = format!("{rest}{}", if last == "9" { "8" } else { "9" });
    let relay = Relay::replacing(nodes[2].address(), version, &other);
    let mut urls = nodes.urls();
    urls[2] = relay.url();
    let examined = nodes.at(urls).doctor(&["--strict"]);
    let (_, number) = other.split_once(':').unwrap();
    examined.one(
        "mixed-versions",
        &format!("warning … {number} … redlock roll"),
    );
    assert_eq!(examined.code, 1, "{examined:?}");
}
