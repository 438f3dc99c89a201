//! A Cluster as one node, through failovers and resharding.

use std::{fmt::Write as _, time::Duration};

use redlock_core::{NodeConfig, Redlock, node::RedisNode};
use redlock_tests::{
    ClientProcess, ClusterNodes, Connect, History, Load, LoadSummary, Work, eventually, now,
    voting, within,
};
use tokio::time::sleep;

use crate::sentinels::{asked_nothing, try_acquire, what_is_said};

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const TTL: Duration = Duration::from_secs(1);
const MAX_TTL: Duration = Duration::from_secs(2);
/// For how long the word of a majority of the nodes counts.
const CONFIRMED: Duration = Duration::from_secs(5);
/// A Cluster takes one to three seconds to find a dead master and to agree on its replica.
const DETECTED: Duration = Duration::from_secs(4);
/// A failover takes a second or two, and a quarantine a little more than `MAX_TTL + CONFIRMED`.
const FOLLOWED: Duration = Duration::from_secs(20);

/// How another server comes to have the slot of the namespace.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// An operator makes its replica the master.
    Failover,
    /// The owner is killed.
    Kill,
    /// The owner hangs, and comes back when its replica has taken its place.
    Freeze,
    /// The slot moves to another shard.
    Reshard,
}

/// The hash tag of the default namespace.
const NAMESPACE: &str = "{redlock}";

/// The hash tag of each node that a URL means.
fn tags_of(url: &str) -> Vec<String> {
    let nodes = NodeConfig::from(url).votes();
    let keys = Redlock::builder().node_keys().unwrap();
    let patterns = nodes.iter().map(|node| node.node_keys(&keys).pattern());
    let tags = patterns.map(|pattern| pattern.split_inclusive('}').next().unwrap().to_owned());
    tags.collect()
}

/// Two processes work on while the owner of a vote's slot changes in each of these ways; returns what it cost.
///
/// Where there are several votes, each vote is back before the next one is taken away.
async fn change_under_load(shards: usize, votes: usize, changes: &[Change]) -> String {
    let mut nodes = ClusterNodes::start(shards);
    let url = match votes {
        1 => nodes.url(),
        _ => format!("{}?votes={votes}", nodes.url()),
    };
    let tags = tags_of(&url);
    assert_eq!(tags.len(), votes);
    let history = History::new();
    let connect = Connect {
        max_ttl: MAX_TTL,
        ..Connect::to(vec![url], TTL)
    };
    // It vouches for the servers.
    let watch = connect.client().await;
    let outages = u32::try_from(changes.len()).unwrap();
    let clients = ["one", "two"].map(|name| {
        let load = Load {
            history: history.file(name),
            connect: connect.clone(),
            tasks: 16,
            keys: 4,
            slots: 0,
            shared_percent: 0,
            acquisitions: 0,
            at_least: outages * (MAX_TTL + CONFIRMED + Duration::from_secs(4)),
            at_most: outages * FOLLOWED + FOLLOWED,
            wait: FOLLOWED,
            hold: Duration::from_millis(5),
            rest: Duration::from_millis(20),
            cancelled_percent: 10,
        };
        ClientProcess::start(CLIENT, &Work::Load(load))
    });
    let holds = || history.holds().len();
    let at_work = async |begun: usize| {
        eventually("leases are held", FOLLOWED, holds, |holds| {
            *holds > begun + 50
        })
        .await;
    };
    at_work(0).await;
    let mut changed = Vec::new();
    for (change, tag) in changes.iter().zip(tags.iter().cycle()) {
        let owner = nodes.owner(tag);
        changed.push(now());
        match change {
            Change::Failover => drop(nodes.promote_replica(tag, owner).await),
            Change::Kill => nodes.at_mut(owner).kill().unwrap(),
            Change::Freeze => nodes.at_mut(owner).freeze().unwrap(),
            Change::Reshard => nodes.move_slot(tag, nodes.another_master(&tags)).unwrap(),
        }
        nodes.succeeded(tag, owner).await;
        if let Change::Freeze = change {
            // It takes itself for the owner until another node tells it.
            nodes.at_mut(owner).thaw().unwrap();
        }
        at_work(holds()).await;
        if votes > 1 {
            let moved = now();
            let has_lost = async || voting(&watch, votes - 1, FOLLOWED).await;
            has_lost().await;
            voting(&watch, votes, FOLLOWED).await;
            assert!(now() - moved > MAX_TTL, "it may have forgotten a lease");
        }
    }
    for client in clients {
        let summary: LoadSummary = client.finish(outages * FOLLOWED + FOLLOWED).await;
        eprintln!("{summary:?}");
        assert!(votes == 1 || summary.failed.is_empty(), "a majority votes");
    }
    let keys = || nodes.keys();
    eventually("no server has a key", FOLLOWED, keys, Vec::is_empty).await;
    let holds = history.assert_exclusive();
    let mut begins: Vec<_> = holds.iter().map(|hold| hold.from).collect();
    begins.sort();
    let mut report = format!(
        "{shards} x 2, votes: {votes}, holds: {}, overlaps: 0, keys left: 0",
        holds.len()
    );
    changed.push(now());
    for (change, times) in changes.iter().zip(changed.windows(2)) {
        let pairs = begins.windows(2).map(|pair| (pair[0], pair[1]));
        let pauses = pairs.filter(|(_, next)| (times[0]..times[1]).contains(next));
        let longest = pauses.map(|(last, next)| next - last).max().unwrap();
        if votes > 1 {
            let _ = write!(report, "; {change:?}: no lease for {longest:?}");
            // Where a slot has no owner, masters of other slots refuse all commands.
            assert!(longest < DETECTED, "{longest:?}");
            continue;
        }
        let bound = MAX_TTL + CONFIRMED;
        let ratio = longest.as_secs_f64() / bound.as_secs_f64();
        let _ = write!(
            report,
            "; {change:?}: no lease for {longest:?}, {ratio:.2} x (max_ttl + 5 s)"
        );
        assert!(longest >= bound, "the new owner may have forgotten a lease");
        assert!(longest < bound * 11 / 10 + DETECTED, "{longest:?}");
    }
    report
}

// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failovers_under_load_leave_no_overlap_and_no_key() {
    let changes = [Change::Failover, Change::Kill];
    println!("{}", change_under_load(3, 1, &changes).await);
}

// Shows: R7.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_under_load_leaves_no_overlap_and_no_key() {
    let changes = [Change::Reshard, Change::Freeze];
    println!("{}", change_under_load(5, 1, &changes).await);
}

// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_three_votes_goes_on_while_each_of_them_fails_over() {
    let changes = [Change::Failover, Change::Kill, Change::Freeze];
    println!("{}", change_under_load(3, 3, &changes).await);
}

// Shows: R7.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_three_votes_goes_on_while_a_slot_moves() {
    println!("{}", change_under_load(5, 3, &[Change::Reshard]).await);
}

/// Two votes on one server would fail together.
// Shows: R7.9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_votes_on_one_master_are_one() {
    let nodes = ClusterNodes::start(3);
    let url = format!("{}?votes=3", nodes.url());
    let tags = tags_of(&url);
    let connect = Connect {
        max_ttl: MAX_TTL,
        ..Connect::to(vec![url], TTL)
    };
    let redlock = connect.client().await;
    let (first, third) = (nodes.owner(&tags[0]), nodes.owner(&tags[2]));
    nodes.move_slot(&tags[2], first).unwrap();
    voting(&redlock, 2, FOLLOWED).await;
    let is_said = || async {
        let report = redlock.node_reports().await.swap_remove(2).to_string();
        report.contains("the same server as nodes[0]")
    };
    let said = async {
        while !is_said().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    within("the reason", FOLLOWED, said).await;
    sleep(MAX_TTL + CONFIRMED + Duration::from_secs(1)).await;
    voting(&redlock, 2, Duration::from_secs(1)).await;
    nodes.move_slot(&tags[2], third).unwrap();
    voting(&redlock, 3, FOLLOWED).await;
}

/// Of the two votes, the first is in quarantine and the second goes on.
// Shows: R7.9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vote_goes_on_though_the_slot_of_an_earlier_one_moves_to_its_master() {
    let nodes = ClusterNodes::start(3);
    let url = format!("{}?votes=3", nodes.url());
    let tags = tags_of(&url);
    let connect = Connect {
        max_ttl: MAX_TTL,
        ..Connect::to(vec![url], TTL)
    };
    let redlock = connect.client().await;
    voting(&redlock, 3, FOLLOWED).await;
    nodes.move_slot(&tags[0], nodes.owner(&tags[1])).unwrap();
    // The move raises the epoch of that master, so both votes wait once, and then one of them counts.
    let moved = now();
    sleep(Duration::from_secs(2)).await;
    voting(&redlock, 2, FOLLOWED).await;
    assert!(try_acquire(&redlock).await, "two votes are a majority");
    let took = now() - moved;
    println!("time without a lease: {took:?}");
    assert!(
        took < (MAX_TTL + CONFIRMED) * 11 / 10 + DETECTED,
        "{took:?}"
    );
    let reports = redlock.node_reports().await;
    let said = reports.iter().map(ToString::to_string);
    let said = said.collect::<Vec<_>>().join("\n");
    assert!(said.contains("the same server as nodes["), "{said}");
    // With the third vote, two of three forget their counters: no further server is waited for.
    let port = nodes.owner(&tags[2]);
    nodes.promote_replica(&tags[2], port).await;
    voting(&redlock, 1, FOLLOWED).await;
    voting(&redlock, 2, FOLLOWED).await;
    assert!(try_acquire(&redlock).await, "the two votes are a majority");
}

/// A majority of masters alone would not do: the old owner and the promoted one each have one with the others.
// Shows: R7.2, R7.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_no_majority_of_the_nodes_confirms_is_asked_nothing() {
    let nodes = ClusterNodes::start(3);
    let redlock = Connect::to(vec![nodes.url()], TTL).client().await;
    assert!(try_acquire(&redlock).await);
    for replica in &nodes.replicas {
        replica.freeze().unwrap();
    }
    let reason = asked_nothing(&redlock).await;
    assert!(reason.contains("fewer than 4 of 6 nodes"), "{reason}");
    for replica in &nodes.replicas {
        replica.thaw().unwrap();
    }
    voting(&redlock, 1, FOLLOWED).await;
    assert!(try_acquire(&redlock).await, "it has not changed");
}

// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_is_down_takes_the_vote_and_gives_it_back_without_a_quarantine() {
    let mut nodes = ClusterNodes::start(3);
    let redlock = Connect::to(vec![nodes.url()], TTL).client().await;
    let owner = nodes.owner(NAMESPACE);
    let shard = usize::from(nodes.masters[0].port() == owner);
    nodes.masters[shard].kill().unwrap();
    nodes.replicas[shard].kill().unwrap();
    let said = what_is_said(&redlock).await;
    assert!(said.contains("cluster that is down"), "{said}");
    nodes.masters[shard].restart().unwrap();
    nodes.replicas[shard].restart().unwrap();
    let restarted = now();
    voting(&redlock, 1, FOLLOWED).await;
    let took = now() - restarted;
    assert!(took < CONFIRMED, "it has kept its data: {took:?}");
    assert!(try_acquire(&redlock).await);
}

// Shows: R7.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_cluster_does_not_say_is_said() {
    let mut nodes = ClusterNodes::start(3);
    let line = async |url: &str| {
        let redlock = Redlock::builder().node(url).connect_lazily().build();
        what_is_said(&redlock.await.unwrap()).await
    };
    let url = nodes.url();
    // A user without the rights, and one that has them.
    for server in nodes.servers() {
        let mut rule = vec!["ACL", "SETUSER", "app", "on", ">secret", "~{redlock}:*"];
        rule.extend(RedisNode::RIGHTS.split(' '));
        server.command(&rule).unwrap();
    }
    let of_app = url.replace("://", "://app:secret@");
    let refused = line(&of_app).await;
    assert!(
        refused.contains(RedisNode::RIGHTS_FOR_CLUSTERS),
        "{refused}"
    );
    for server in nodes.servers() {
        let mut rule = vec!["ACL", "SETUSER", "app"];
        rule.extend(RedisNode::RIGHTS_FOR_CLUSTERS.split(' '));
        server.command(&rule).unwrap();
    }
    let redlock = Connect::to(vec![of_app], TTL).client().await;
    assert!(try_acquire(&redlock).await);
    let alone = redlock_tests::Nodes::start(1);
    let alone = line(&format!("redis+cluster://{}", alone[0].address())).await;
    assert!(alone.contains("is no part of a Cluster"), "{alone}");
    let owner = nodes.owner(NAMESPACE);
    let slot = nodes
        .at(owner)
        .command(&["CLUSTER", "KEYSLOT", "{redlock}"]);
    let slot = slot.unwrap().as_integer().unwrap().to_string();
    for server in nodes.servers() {
        // A replica has no slots of its own, and forgets the owner all the same.
        let _ = server.command(&["CLUSTER", "DELSLOTS", &slot]);
    }
    let first = nodes.masters[0].address();
    let ownerless = line(&format!("redis+cluster://{first}")).await;
    assert!(
        ownerless.contains("names no owner of the slot"),
        "{ownerless}"
    );
    nodes.replicas[0].kill().unwrap();
    let killed = nodes.replicas[0].address();
    let silent = line(&format!("redis+cluster://{killed}")).await;
    assert!(silent.contains("refused"), "{silent}");
}
