//! Masters whose restarts are declared to be delayed: which of them a function takes for one that began a new run.

use redlock_core::node::{Node, RedisNode, Request};
use redlock_proto::{MarkState, NodeVerb};

use crate::functions::fixtures::{
    EXTEND, Master, connect, debuggable, is_aged, is_quarantined, keyspace, request,
};

// Shows: R1.1.
#[tokio::test]
async fn a_new_run_without_data_waits_for_its_floor_only() {
    let mut master = Master::opened().await;
    master.server.restart().unwrap();
    master.reconnect().await;
    assert!(is_aged(&master.inspect().await));
    assert!(is_aged(&master.inspect().await), "until it is told");
    let extend = [request(EXTEND, "nobody's", 1)];
    let answer = master.call(&extend).await;
    assert!(is_aged(&answer.standing.unwrap().state));
}

// Shows: E7, R1.1.
#[tokio::test]
async fn a_master_that_is_emptied_while_it_runs_is_quarantined() {
    for command in [&["FLUSHALL"][..], &["DEL", "{fn}:mark"]] {
        let mut master = Master::opened().await;
        master.command(command);
        assert!(is_quarantined(&master.inspect().await), "{command:?}");
        // Nor does it help to empty it again, or to come by another connection.
        master.command(command);
        master.reconnect().await;
        assert!(is_quarantined(&master.inspect().await), "{command:?}");
    }
}

// Shows: G2, R1.3.
#[tokio::test]
async fn a_master_whose_mark_outlived_its_run_is_quarantined() {
    let mut master = Master::opened().await;
    master.command(&["SAVE"]);
    master.server.restart().unwrap();
    assert_eq!(master.libraries().len(), 1, "the snapshot has the library");
    let mark = master.command(&["GET", "{fn}:mark"]);
    assert!(mark.as_text().unwrap().starts_with("voting "));
    master.reconnect().await;
    assert!(is_quarantined(&master.inspect().await));
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
    assert!(is_quarantined(&replica.inspect().await));
}

#[tokio::test]
async fn a_master_that_is_not_called_by_functions_is_quarantined() {
    let mut master = Master::start(debuggable()).await;
    let node = RedisNode::at(&master.server.url()).unwrap();
    master.session = node.without_functions().connect().await.unwrap();
    assert!(is_quarantined(&master.inspect().await));
}

// Shows: R1.1.
#[tokio::test]
async fn a_client_without_functions_lets_a_master_that_forgot_in_for_nobody() {
    let mut master = Master::opened().await;
    let node = RedisNode::at(&master.server.url()).unwrap();
    let mut scripted = node.without_functions().connect().await.unwrap();
    master.command(&["DEL", "{fn}:mark"]);
    let inspect = [Request::Node(NodeVerb::Inspect)];
    let answer = scripted.call(&keyspace(), &inspect).await.unwrap();
    assert!(is_quarantined(&answer.standing.unwrap().state));
    assert!(is_quarantined(&master.inspect().await));
}

// Shows: E13, R1.6.
#[tokio::test]
async fn after_a_reload_a_master_votes_on_and_its_mark_is_looked_at_again() {
    let mut master = Master::opened().await;
    master.command(&["DEBUG", "RELOAD"]);
    assert_eq!(master.inspect().await, MarkState::Voting);
    master.command(&["FLUSHALL"]);
    assert!(is_quarantined(&master.inspect().await));
}

// Shows: E14.
#[tokio::test]
async fn a_database_that_takes_the_place_of_another_is_judged_by_its_own_mark() {
    let mut master = Master::opened().await;
    let mut elsewhere = connect(&format!("{}/1", master.server.url())).await;
    let inspect = [Request::Node(NodeVerb::Inspect)];
    let answer = elsewhere.call(&keyspace(), &inspect).await.unwrap();
    assert!(is_quarantined(&answer.standing.unwrap().state));
    master.command(&["SWAPDB", "0", "1"]);
    assert!(is_quarantined(&master.inspect().await));
    let answer = elsewhere.call(&keyspace(), &inspect).await.unwrap();
    assert_eq!(answer.standing.unwrap().state, MarkState::Voting);
}
