//! Masters that lost data, or were given another's, and the mark that tells it.

use redlock_core::node::{Reply, Request};
use redlock_proto::{MarkState, NodeVerb};

use crate::marks::fixtures::{Master, acquire, connect, is_quarantined, keyspace, request};

// Shows: E7.
#[tokio::test]
async fn a_master_that_is_emptied_while_it_runs_is_quarantined() {
    for command in [&["FLUSHALL"][..], &["DEL", "{marks}:mark"]] {
        let mut master = Master::opened().await;
        master.command(command);
        assert!(is_quarantined(&master.inspect().await), "{command:?}");
        // Nor does it help to empty it again, or to come by another connection.
        master.command(command);
        master.reconnect().await;
        assert!(is_quarantined(&master.inspect().await), "{command:?}");
    }
}

// Shows: E2, G2.
#[tokio::test]
async fn a_master_whose_mark_outlived_its_run_is_quarantined() {
    let mut master = Master::opened().await;
    master.command(&["SAVE"]);
    master.server.restart().unwrap();
    let mark = master.command(&["GET", "{marks}:mark"]);
    assert!(mark.as_text().unwrap().starts_with("voting "));
    master.reconnect().await;
    assert!(is_quarantined(&master.inspect().await));
}

// Shows: E13.
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

// Shows: L1.2.
#[tokio::test]
async fn a_mark_with_a_setting_that_was_removed_is_of_another_policy_and_is_left_as_it_is() {
    let mut master = Master::opened().await;
    let mark = master.command(&["GET", "{marks}:mark"]);
    let before = mark.as_text().unwrap().replace(",v", ",delayed_restarts,v");
    master.command(&["SET", "{marks}:mark", &before]);
    let state = master.inspect().await;
    let MarkState::PolicyMismatch { theirs } = state else {
        panic!("{state:?}");
    };
    assert!(theirs.contains("delayed_restarts"), "{theirs}");
    let take = master.call(&[request(acquire(1), "a", 1)]).await;
    assert_eq!(take.replies, [Ok(Reply::PolicyMismatch)]);
    assert!(!master.exists("a"));
    assert_eq!(
        master.command(&["GET", "{marks}:mark"]).as_text(),
        Some(&*before)
    );
}
