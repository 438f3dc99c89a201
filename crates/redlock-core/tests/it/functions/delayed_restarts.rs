//! Masters whose restarts are declared to be delayed: which of them a function takes for one that began a new run.

use std::sync::Arc;

use redlock_core::node::{Keyspace, Node, RedisNode, Request};
use redlock_proto::{MarkState, NodeVerb, Quarantine};

use crate::functions::fixtures::{EXTEND, Master, TTL, debuggable, is_quarantined, request};

fn delayed() -> Arc<Keyspace> {
    let quarantine = Quarantine::new(3 * TTL, 0.01);
    Arc::new(Keyspace::new(
        "{fn}",
        quarantine.trusting_delayed_restarts(),
    ))
}

/// Has it inspected, as clients do when they connect; returns where it stands.
async fn inspected(master: &mut Master) -> MarkState {
    let inspect = [Request::Node(NodeVerb::Inspect)];
    let answer = master.session.call(&delayed(), &inspect).await.unwrap();
    answer.standing.unwrap().state
}

fn is_aged(state: &MarkState) -> bool {
    matches!(state, MarkState::Aged { .. })
}

/// Returns a master that was opened for votes after it had begun a new run.
async fn opened() -> Master {
    let mut master = Master::start(debuggable()).await;
    let MarkState::Aged { since } = inspected(&mut master).await else {
        panic!("it has begun a new run");
    };
    let open = Request::Node(NodeVerb::Open {
        floor: 0,
        since,
        horizon: None,
    });
    let opened = master.session.call(&delayed(), &[open]).await.unwrap();
    assert!(opened.replies[0].is_ok());
    assert_eq!(inspected(&mut master).await, MarkState::Voting);
    master
}

// Shows: R1.1.
#[tokio::test]
async fn a_new_run_without_data_waits_for_its_floor_only() {
    let mut master = opened().await;
    master.server.restart().unwrap();
    master.reconnect().await;
    assert!(is_aged(&inspected(&mut master).await));
    assert!(is_aged(&inspected(&mut master).await), "until it is told");
    let extend = [request(EXTEND, "nobody's", 1)];
    let answer = master.session.call(&delayed(), &extend).await.unwrap();
    assert!(is_aged(&answer.standing.unwrap().state));
}

// Shows: R1.1.
#[tokio::test]
async fn a_master_that_is_emptied_while_it_runs_is_quarantined() {
    let mut master = opened().await;
    master.command(&["FLUSHALL"]);
    assert!(is_quarantined(&inspected(&mut master).await));
    // Nor does it help to empty it again, or to come by another connection.
    master.command(&["FLUSHALL"]);
    master.reconnect().await;
    assert!(is_quarantined(&inspected(&mut master).await));
}

// Shows: R1.3.
#[tokio::test]
async fn a_master_whose_mark_outlived_its_run_is_quarantined() {
    let mut master = opened().await;
    master.command(&["SAVE"]);
    master.server.restart().unwrap();
    master.reconnect().await;
    assert!(is_quarantined(&inspected(&mut master).await));
}

// Shows: R1.2.
#[tokio::test]
async fn a_replica_that_leads_is_quarantined_though_it_has_no_mark() {
    let master = Master::start(debuggable()).await;
    let mut replica = Master::start(debuggable()).await;
    let port = master.server.port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    replica.until("replication", "master_link_status:up").await;
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    assert!(replica.command(&["GET", "{fn}:mark"]).is_nil());
    assert!(is_quarantined(&inspected(&mut replica).await));
}

#[tokio::test]
async fn a_master_that_is_not_called_by_functions_is_quarantined() {
    let mut master = Master::start(debuggable()).await;
    let node = RedisNode::at(&master.server.url()).unwrap();
    master.session = node.without_functions().connect().await.unwrap();
    assert!(is_quarantined(&inspected(&mut master).await));
}

// Shows: R1.1.
#[tokio::test]
async fn a_client_without_functions_lets_a_master_that_forgot_in_for_nobody() {
    let mut master = opened().await;
    let node = RedisNode::at(&master.server.url()).unwrap();
    let mut scripted = node.without_functions().connect().await.unwrap();
    master.command(&["DEL", "{fn}:mark"]);
    let inspect = [Request::Node(NodeVerb::Inspect)];
    let answer = scripted.call(&delayed(), &inspect).await.unwrap();
    assert!(is_quarantined(&answer.standing.unwrap().state));
    assert!(is_quarantined(&inspected(&mut master).await));
}
