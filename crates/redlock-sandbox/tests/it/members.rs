//! Sentinels and nodes of a Cluster that are cut off, installed again, or replaced.

use std::{
    thread,
    time::{Duration, Instant},
};

use redlock_sandbox::{ClusterSet, SentinelSet, Server, ServerBinary, ServerOptions};

#[test]
fn a_master_that_is_cut_off_answers_clients_and_loses_its_place() {
    let options = ServerOptions::default().password("secret");
    let set = SentinelSet::start_with(&binary(), 1, 3, &options).unwrap();
    assert!(set.urls()[0].starts_with("redis+sentinel://:secret@127.0.0.1:"));
    let [master, replica] = [&set.masters[0], &set.replicas[0]];
    set.cut_off(master.port()).unwrap();
    let is_promoted = || set.master_port(0).unwrap() == Some(replica.port());
    wait_until("a failover", is_promoted);
    assert_eq!(text(master, &["SET", "key", "value"]), "OK");
    set.reconnect(master.port()).unwrap();
    let follows = || text(master, &["INFO", "replication"]).contains("master_link_status:up");
    wait_until("a replica", follows);
}

#[test]
fn a_sentinel_that_is_installed_again_or_replaced_has_another_id_and_watches() {
    let mut set = SentinelSet::start(&binary(), 1).unwrap();
    let [id, port] = [
        text(&set.sentinels[0], &["SENTINEL", "MYID"]),
        port_of(&set),
    ];
    set.sentinels[0].restart().unwrap();
    assert_eq!(text(&set.sentinels[0], &["SENTINEL", "MYID"]), id);
    set.reinstall(0).unwrap();
    let installed = text(&set.sentinels[0], &["SENTINEL", "MYID"]);
    assert_ne!(installed, id);
    assert_eq!(port_of(&set), port);
    let before = set.sentinels[0].port();
    set.replace(0).unwrap();
    assert_ne!(text(&set.sentinels[0], &["SENTINEL", "MYID"]), installed);
    assert_ne!(set.sentinels[0].port(), before);
    assert_eq!(port_of(&set), port);
}

#[test]
fn a_replica_that_is_replaced_stays_in_the_memory_of_its_cluster() {
    let mut cluster = ClusterSet::start(&binary(), 3).unwrap();
    let gone = cluster.replicas[0].port();
    cluster.replace_replica(0).unwrap();
    let [master, replica] = [&cluster.masters[0], &cluster.replicas[0]];
    let info = text(replica, &["INFO", "replication"]);
    assert!(
        info.contains(&format!("master_port:{}", master.port())),
        "{info}"
    );
    let known = || text(master, &["CLUSTER", "NODES"]);
    wait_until("a member that has failed", || {
        let nodes = known();
        let mut lines = nodes.lines();
        lines.any(|line| line.contains(&format!(":{gone}@")) && line.contains("fail"))
    });
    assert_eq!(known().lines().count(), 7);
}

fn binary() -> ServerBinary {
    ServerBinary::find().unwrap_or_else(|error| panic!("{error}"))
}

/// The port that the first Sentinel names.
fn port_of(set: &SentinelSet) -> String {
    set.master_port(0).unwrap().unwrap().to_string()
}

fn text(server: &Server, command: &[&str]) -> String {
    let answer = server.command(command).unwrap();
    answer.as_text().unwrap().to_owned()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a patience limit, not the deadline of a lease"
)]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}
