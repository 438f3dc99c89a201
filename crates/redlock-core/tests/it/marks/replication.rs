//! Masters that become replicas and lead again, in one process, and replicas that are promoted.

use redlock_core::node::{Reply, Request};
use redlock_proto::{MarkState, NodeVerb};

use crate::marks::fixtures::{Master, TTL, acquire, debuggable, is_quarantined, keyspace, request};

/// Returns a master that votes, and a replica that has copied it.
async fn pair() -> (Master, Master) {
    let mut master = Master::start(debuggable()).await;
    let replica = Master::start(debuggable().own_clock()).await;
    follow(&replica, &master).await;
    master.open().await;
    (master, replica)
}

async fn follow(replica: &Master, master: &Master) {
    let port = master.server.port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    replica.until("replication", "master_link_status:up").await;
}

fn lead(replica: &Master) {
    replica.command(&["REPLICAOF", "NO", "ONE"]);
}

/// Waits until the replica has heard of everything.
async fn caught_up(replica: &Master, master: &Master) {
    let info = master.info("replication");
    let offset = info
        .lines()
        .find(|line| line.starts_with("master_repl_offset:"));
    replica.until("replication", offset.unwrap()).await;
}

// Shows: E4.
#[tokio::test]
async fn a_promoted_replica_does_not_vote() {
    let (master, mut replica) = pair().await;
    caught_up(&replica, &master).await;
    lead(&replica);
    replica.reconnect().await;
    assert!(is_quarantined(&replica.inspect().await));
}

// Shows: E5.
#[tokio::test]
async fn a_master_that_copied_its_replica_does_not_vote() {
    let (mut master, replica) = pair().await;
    caught_up(&replica, &master).await;
    // What the replica does not hear of is not in its data, nor in the master's after it has copied them.
    lead(&replica);
    let take = [request(acquire(1), "a", 1)];
    let taken = [Ok(Reply::Taken { counter: 1 })];
    assert_eq!(master.call(&take).await.replies, taken);
    follow(&master, &replica).await;
    assert!(replica.info("stats").contains("sync_full:1"));
    lead(&master);
    assert!(!master.exists("a"));
    let mark = master.command(&["GET", "{marks}:mark"]);
    assert!(mark.as_text().unwrap().starts_with("voting "));
    assert!(is_quarantined(&master.inspect().await));
}

/// The mark is what it was, and while another server leads, keys end by that one's clock.
// Shows: E6, G2.
#[tokio::test]
async fn a_master_that_got_from_its_replica_only_what_it_had_missed_does_not_vote() {
    let (mut master, replica) = pair().await;
    let take = [request(acquire(1), "a", 1)];
    let taken = [Ok(Reply::Taken { counter: 1 })];
    assert_eq!(master.call(&take).await.replies, taken);
    caught_up(&replica, &master).await;
    lead(&replica);
    replica.server.clock().unwrap().advance(2 * TTL).unwrap();
    assert!(!replica.exists("a"), "its time is over there");
    let mark = master.command(&["GET", "{marks}:mark"]);
    follow(&master, &replica).await;
    assert!(replica.info("stats").contains("sync_partial_ok:1"));
    caught_up(&master, &replica).await;
    lead(&master);

    assert!(!master.exists("a"), "it is gone before its time");
    assert_eq!(master.command(&["GET", "{marks}:mark"]), mark);
    let answer = master.call(&[request(acquire(2), "a", 2)]).await;
    assert_ne!(answer.standing.unwrap().state, MarkState::Voting);
    assert!(is_quarantined(&master.inspect().await));
}

#[tokio::test]
async fn a_replica_says_what_it_is_and_grants_nothing() {
    let (mut master, replica) = pair().await;
    follow(&master, &replica).await;
    let refused = [request(acquire(1), "a", 1)];
    let refused = master.session.call(&keyspace(), &refused).await;
    let error = refused.expect_err("it writes nothing");
    assert!(error.wrong_server && !error.may_have_run, "{error:?}");
    let inspected = master.call(&[Request::Node(NodeVerb::Inspect)]).await;
    assert!(matches!(inspected.replies[..], [Ok(Reply::ServerInfo(_))]));
}
