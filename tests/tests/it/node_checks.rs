//! A node that is not fit to vote is named with what to do about it, and the others go on.

use std::time::Duration;

use redlock_core::{AcquireErrorKind, BuildErrorKind, NodeAnswer, NotAVote, Redlock, Unfit};
use redlock_sandbox::{Persistence, ServerOptions};
use redlock_tests::{
    Connect, Nodes, Proxy, Relay, builder, client, eventually, now, voting, within,
};

const TTL: Duration = Duration::from_secs(10);
const MARK: &str = "{redlock}:mark";
const SOON: Duration = Duration::from_secs(2);
/// A quarantine of `SOON`, and eight searches for a floor.
const PATIENCE: Duration = Duration::from_secs(20);
/// Nodes are asked what they are when a connection is made, and every five seconds.
const INSPECTED: Duration = Duration::from_secs(8);

/// Why a node's grants are no votes, as `node_reports` has it.
async fn reason(redlock: &Redlock, node: usize) -> NotAVote {
    let report = redlock.node_reports().await.swap_remove(node);
    match report.answer {
        NodeAnswer::NotAVote { reason } => reason,
        other => panic!("{}: {other}", report.node),
    }
}

/// Waits for what a node stands for now.
async fn eventually_stands(
    redlock: &Redlock,
    node: usize,
    limit: Duration,
    wanted: impl Fn(&NodeAnswer) -> bool,
) {
    let look = async {
        while !wanted(&redlock.node_reports().await[node].answer) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("the node's standing", limit, look).await;
}

/// The others go on: every acquire wins at once.
async fn goes_on(redlock: &Redlock) {
    for _ in 0..20 {
        let guard = redlock.try_acquire("a").await.unwrap();
        guard.extend().await.unwrap();
        guard.release().await.unwrap();
    }
}

/// Without the others there is no majority, though this node runs; returns its line of the error.
async fn does_not_count(redlock: &Redlock, node: usize) -> String {
    let refused = async {
        loop {
            let error = redlock.try_acquire("a").await.unwrap_err();
            assert_eq!(error.kind(), AcquireErrorKind::NoQuorum, "{error}");
            // An attempt ends as soon as the others have decided it.
            if error.reports()[node].answer != NodeAnswer::Pending {
                return error;
            }
        }
    };
    let error = within("the node's answer", SOON, refused).await;
    let line = error.reports()[node].to_string();
    assert!(error.to_string().contains(&line), "{error}");
    line
}

// Shows: E10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s11_a_replica_is_told_to_be_one_and_does_not_vote() {
    let mut nodes = Nodes::start(4);
    let port = nodes[3].port().to_string();
    nodes.ask(2, &["REPLICAOF", "127.0.0.1", &port]);
    let redlock = client(nodes.urls().into_iter().take(3), TTL).await;
    let replica = NotAVote::Unfit(Unfit::Replica);
    assert_eq!(reason(&redlock, 2).await, replica);
    goes_on(&redlock).await;
    nodes.kill(1..2);
    let line = does_not_count(&redlock, 2).await;
    assert!(line.contains("it is a replica"), "{line}");
    // Nothing is wrong with the only master that is left, but there is no other clock to compare its clock with.
    assert_eq!(reason(&redlock, 0).await, NotAVote::Alone);
}

// Shows: L2.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s11_one_server_under_two_addresses_has_one_vote() {
    let mut nodes = Nodes::start(2);
    let other_address = Proxy::start(nodes[0].address()).await.unwrap();
    let urls = [nodes[0].url(), other_address.url(), nodes[1].url()];
    let redlock = client(urls, TTL).await;
    let twin = NotAVote::SameServer { of: 0 };
    assert_eq!(reason(&redlock, 1).await, twin);
    goes_on(&redlock).await;
    nodes.kill(1..2);
    let line = does_not_count(&redlock, 1).await;
    assert!(line.contains("it is the same server as nodes[0]"), "{line}");
}

/// The second vote of a server never comes, so the client waits for no counters there.
// Shows: L3.5, L3.7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_restarts_empty_votes_again_beside_one_server_with_two_votes() {
    let mut nodes = Nodes::start(2);
    let other_address = Proxy::start(nodes[1].address()).await.unwrap();
    let urls = [nodes[0].url(), nodes[1].url(), other_address.url()];
    let connect = Connect {
        max_ttl: SOON,
        ..Connect::to(urls.into(), Duration::from_secs(1))
    };
    let redlock = connect.client().await;
    let before = redlock.acquire("a").await.unwrap();
    let token = before.token();
    before.release().await.unwrap();
    nodes.kill(0..1);
    nodes[0].restart().unwrap();
    let begun = now();
    // The client may not know of the restart yet.
    voting(&redlock, 1, PATIENCE).await;
    voting(&redlock, 2, PATIENCE).await;
    println!("it votes {:?} after its restart", now() - begun);
    let after = redlock.acquire("a").await.unwrap();
    assert!(after.token() > token);
    after.release().await.unwrap();
}

// Shows: A3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_evicts_keys_does_not_vote_until_that_is_changed() {
    let mut nodes = Nodes::start(3);
    let set =
        |node: usize, what: &str, to: &str| drop(nodes.ask(node, &["CONFIG", "SET", what, to]));
    // Without a limit the policy does nothing.
    set(1, "maxmemory-policy", "allkeys-lru");
    set(2, "maxmemory-policy", "volatile-ttl");
    set(2, "maxmemory", "100mb");
    let redlock = client(nodes.urls(), TTL).await;
    let evicts = |policy: &str| {
        NotAVote::Unfit(Unfit::Evicts {
            policy: policy.into(),
        })
    };
    assert_eq!(reason(&redlock, 2).await, evicts("volatile-ttl"));
    goes_on(&redlock).await;
    set(1, "maxmemory", "100mb");
    set(2, "maxmemory-policy", "noeviction");
    let lru = NodeAnswer::NotAVote {
        reason: evicts("allkeys-lru"),
    };
    eventually_stands(&redlock, 1, INSPECTED, |answer| *answer == lru).await;
    let votes = |answer: &NodeAnswer| *answer == NodeAnswer::Reachable;
    eventually_stands(&redlock, 2, INSPECTED, votes).await;
    goes_on(&redlock).await;
    nodes.kill(2..3);
    let line = does_not_count(&redlock, 1).await;
    assert!(line.contains("maxmemory-policy allkeys-lru"), "{line}");
    assert!(line.contains("set it to noeviction"), "{line}");
}

// Shows: A4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_used_with_another_longest_time_does_not_vote() {
    let mut nodes = Nodes::start(3);
    let longer = builder([nodes[2].url()], TTL).max_ttl(TTL * 9);
    let longer = longer.build().await.unwrap();
    longer.dangerous_bless().await;
    longer
        .try_acquire("a")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();

    let redlock = client(nodes.urls(), TTL).await;
    let unlike = NotAVote::PolicyMismatch {
        theirs: "90000ms,10000ppm,v4".into(),
        ours: "60000ms,10000ppm,v4".into(),
    };
    assert_eq!(reason(&redlock, 2).await, unlike);
    goes_on(&redlock).await;
    goes_on(&longer).await;
    nodes.kill(1..2);
    let line = does_not_count(&redlock, 2).await;
    let words = "their max_ttl (REDLOCK_MAX_TTL) is 90s, and this client's is 60s; give this client their value";
    assert!(line.contains(words), "{line}");
}

// Shows: A4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_another_version_gets_nothing_and_is_told_why() {
    let nodes = Nodes::start(3);
    let redlock = client(nodes.urls(), TTL).await;
    let first = redlock.try_acquire("a").await.unwrap();
    let token = first.token();
    first.release().await.unwrap();
    // What clients from before there were versions, and those of a later one, leave on a node.
    let before = |mark: &str| mark.replace(",v4", "");
    let later = |mark: &str| mark.replace(",v4", ",v5");
    let mark = |node: usize| nodes.ask(node, &["GET", MARK]);
    let theirs = [before(&mark(0)), mark(1), later(&mark(2))];
    nodes.ask(2, &["SET", MARK, &theirs[2]]);
    goes_on(&redlock).await;
    nodes.ask(0, &["SET", MARK, &theirs[0]]);

    let error = redlock.try_acquire("a").await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::NoQuorum, "{error}");
    for (node, version) in [(0, "(60000ms,10000ppm)"), (2, "(60000ms,10000ppm,v5)")] {
        let line = does_not_count(&redlock, node).await;
        let said = format!("another version of this client uses this namespace there {version}");
        assert!(line.contains(&said), "{line}");
    }
    assert_eq!([0, 1, 2].map(mark), theirs);
    let locks = || nodes.ask(0, &["EXISTS", "{redlock}:lock:a"]);
    assert_eq!(locks(), "0");

    // The way from one version to the next: without their marks, nodes are quarantined. Version 2 had no such counters.
    for node in 0..3 {
        nodes.ask(node, &["DEL", MARK, "{redlock}:counters"]);
    }
    let quarantined = |answer: &NodeAnswer| matches!(answer, NodeAnswer::NotAVote { reason } if reason.ready_in().is_some());
    for node in 0..3 {
        eventually_stands(&redlock, node, INSPECTED, quarantined).await;
    }
    redlock.dangerous_bless().await;
    goes_on(&redlock).await;
    let last = redlock.try_acquire("a").await.unwrap();
    assert!(last.token() > token);
}

// Shows: E12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s16_a_master_with_a_replica_does_not_vote_but_by_best_effort() {
    let nodes = Nodes::start(4);
    let urls = || nodes.urls().into_iter().take(3);
    let port = nodes[2].port().to_string();
    nodes.ask(3, &["REPLICAOF", "127.0.0.1", &port]);
    let info = || nodes.ask(2, &["INFO", "replication"]);
    eventually("it is copied", SOON * 5, info, |info| {
        info.contains("connected_slaves:1")
    })
    .await;
    let redlock = client(urls(), TTL).await;
    let copied = NotAVote::Unfit(Unfit::HasReplicas);
    assert_eq!(reason(&redlock, 2).await, copied);
    goes_on(&redlock).await;
    let effort = Redlock::builder().best_effort(nodes[2].url());
    let effort = effort.namespace("effort").ttl(TTL).build().await.unwrap();
    voting(&effort, 1, SOON).await;
    goes_on(&effort).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_is_too_old_does_not_vote() {
    let mut nodes = Nodes::start(3);
    let just_too_old = Relay::of_version(nodes[2].address(), "6.1").await.unwrap();
    let oldest = Relay::of_version(nodes[1].address(), "6.2").await.unwrap();
    let redlock = client([nodes[0].url(), oldest.url(), just_too_old.url()], TTL).await;
    let too_old = NotAVote::Unfit(Unfit::TooOld { version: (6, 1) });
    assert_eq!(reason(&redlock, 2).await, too_old);
    goes_on(&redlock).await;
    nodes.kill(0..1);
    let line = does_not_count(&redlock, 2).await;
    let said = "its version 6.1 is too old; 6.2 is the oldest supported";
    assert!(line.contains(said), "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_refused() {
    let options = ServerOptions::default()
        .argument("--cluster-enabled")
        .argument("yes");
    let cluster = Nodes::start_with(1, &options);
    cluster.ask(0, &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let ok = |info: &String| info.contains("cluster_state:ok");
    let info = || cluster.ask(0, &["CLUSTER", "INFO"]);
    eventually("the cluster is up", SOON * 5, info, ok).await;
    let mut nodes = Nodes::start(2);
    let redlock = client([nodes[0].url(), nodes[1].url(), cluster[0].url()], TTL).await;
    let refused = NotAVote::Unfit(Unfit::Cluster);
    assert_eq!(reason(&redlock, 2).await, refused);
    goes_on(&redlock).await;
    nodes.kill(1..2);
    let line = does_not_count(&redlock, 2).await;
    assert!(line.contains("redis+cluster://"), "{line}");
}

// Shows: A3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn persistence_that_is_trusted_must_be_there() {
    let mut nodes = Nodes::start(3);
    for node in 0..2 {
        nodes.ask(node, &["CONFIG", "SET", "appendonly", "yes"]);
        nodes.ask(node, &["CONFIG", "SET", "appendfsync", "always"]);
    }
    let redlock =
        builder(nodes.urls(), TTL).expert(|expert| expert.dangerous_trust_persistence = true);
    let redlock = redlock.build().await.unwrap();
    redlock.dangerous_bless().await;
    let missing = NotAVote::Unfit(Unfit::NotPersistent);
    assert_eq!(reason(&redlock, 2).await, missing);
    goes_on(&redlock).await;
    nodes.kill(1..2);
    let line = does_not_count(&redlock, 2).await;
    assert!(line.contains("with appendfsync always"), "{line}");
}

// Shows: A3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn persistence_that_is_trusted_must_be_on_disk_before_the_answer() {
    let options = ServerOptions::default().persistence(Persistence::AppendOnly);
    let nodes = Nodes::start_with(3, &options);
    nodes.ask(2, &["CONFIG", "SET", "appendfsync", "everysec"]);
    let trusting =
        builder(nodes.urls(), TTL).expert(|expert| expert.dangerous_trust_persistence = true);
    let redlock = trusting.build().await.unwrap();
    redlock.dangerous_bless().await;
    let late = NotAVote::Unfit(Unfit::SyncsLate {
        policy: "everysec".into(),
    });
    assert_eq!(reason(&redlock, 2).await, late);
    goes_on(&redlock).await;
    // It skips the sync while it rewrites its file.
    nodes.ask(2, &["CONFIG", "SET", "appendfsync", "always"]);
    nodes.ask(2, &["CONFIG", "SET", "no-appendfsync-on-rewrite", "yes"]);
    let pausing =
        builder(nodes.urls(), TTL).expert(|expert| expert.dangerous_trust_persistence = true);
    let pausing = pausing.build().await.unwrap();
    let line = reason(&pausing, 2).await.to_string();
    assert!(line.contains("no-appendfsync-on-rewrite yes"), "{line}");
    // It matters only to clients that trust persistence.
    let redlock = builder(nodes.urls(), TTL);
    assert!(redlock.namespace("other").build().await.is_ok());
}

// Shows: A3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn persistence_that_is_trusted_lets_a_node_vote_at_once_after_a_restart() {
    let options = ServerOptions::default().persistence(Persistence::AppendOnly);
    let mut nodes = Nodes::start_with(3, &options);
    let trusting =
        || builder(nodes.urls(), TTL).expert(|expert| expert.dangerous_trust_persistence = true);
    let (redlock, other) = (trusting().build().await, trusting().build().await);
    let (redlock, other) = (redlock.unwrap(), other.unwrap());
    redlock.dangerous_bless().await;
    let guard = redlock.try_acquire("a").await.unwrap();
    let keys = || nodes.keys();
    eventually("each node has the key", SOON, keys, |keys| keys.len() == 3).await;
    for node in 0..3 {
        nodes[node].restart().unwrap();
        assert!(nodes.pttl(node, "{redlock}:lock:a").is_some());
        // A quarantine would last for a minute.
        for client in [&redlock, &other] {
            voting(client, 3, SOON).await;
        }
        let refused = other.try_acquire("a").await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::Contended, "{refused}");
    }
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
    goes_on(&other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_majority_that_is_not_fit_is_an_error_that_says_what_to_do() {
    let nodes = Nodes::start(6);
    let twin = Proxy::start(nodes[0].address()).await.unwrap();
    nodes.ask(2, &["CONFIG", "SET", "maxmemory", "100mb"]);
    nodes.ask(2, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let port = nodes[5].port().to_string();
    nodes.ask(3, &["REPLICAOF", "127.0.0.1", &port]);
    let longer = builder([nodes[4].url()], TTL).max_ttl(TTL * 9);
    longer.build().await.unwrap();

    let mut urls = nodes.urls();
    urls.truncate(5);
    urls[1] = twin.url();
    let error = builder(urls, TTL).build().await.unwrap_err();
    println!("{error}");
    assert_eq!(error.kind(), BuildErrorKind::NoQuorum);
    assert_eq!(error.field(), "nodes");
    let reasons = [
        "votes in",
        "same server as nodes[0]",
        "set it to noeviction",
        "give the address of a master",
        "give this client their value",
    ];
    for (report, reason) in error.reports().iter().zip(reasons) {
        let line = report.to_string();
        assert!(line.contains(reason), "{line}");
        assert!(error.to_string().contains(&line), "{error}");
    }
    let first = error.to_string();
    let first = first.lines().next().unwrap();
    assert!(first.contains("fit to vote"), "{first}");
}
