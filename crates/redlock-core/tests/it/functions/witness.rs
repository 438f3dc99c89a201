//! What the library remembers, and when that is gone or of no use.

use std::sync::Arc;

use redlock_core::node::{Keyspace, Reply};
use redlock_proto::{MarkState, Quarantine};

use crate::functions::fixtures::{
    EXTEND, Master, TTL, acquire, connect, debuggable, is_quarantined, keyspace, request,
};

// Shows: R2.2.
#[tokio::test]
async fn a_mark_that_is_known_needs_no_whole_look() {
    let mut master = Master::start(debuggable()).await;
    master.vouch().await;
    assert!(!master.is_quick().await, "nobody has looked yet");
    assert!(master.is_quick().await);
    let (before, asked) = (master.calls("info"), master.calls("time"));
    for proposal in 1..=10 {
        let key = format!("{proposal}");
        let answer = master.call(&[request(acquire(proposal), &key, 1)]).await;
        assert_eq!(answer.replies, [Ok(Reply::Taken { counter: proposal })]);
        assert_eq!(answer.standing.unwrap().state, MarkState::Voting);
    }
    assert_eq!(master.calls("time") - asked, 10);
    // Three are this test's own.
    assert_eq!(master.calls("info") - before, 10 + 3);
}

// Shows: G2, R2.3.
#[tokio::test]
async fn a_restart_from_a_snapshot_that_says_it_votes_is_noticed() {
    let mut master = Master::witnessed().await;
    master.command(&["SAVE"]);
    master.server.restart().unwrap();
    assert_eq!(master.libraries().len(), 1, "the snapshot has the library");
    let mark = master.command(&["GET", "{fn}:mark"]);
    assert!(mark.as_text().unwrap().starts_with("voting "));
    master.reconnect().await;
    assert!(is_quarantined(&master.state().await));
}

// Shows: E13, R2.4.
#[tokio::test]
async fn after_a_reload_the_mark_is_looked_at_again() {
    let mut master = Master::witnessed().await;
    master.command(&["DEBUG", "RELOAD"]);
    assert!(!master.is_quick().await, "the library was loaded anew");
    assert_eq!(master.state().await, MarkState::Voting);
    assert!(master.is_quick().await);
}

// Shows: E7, R2.2.
#[tokio::test]
async fn a_mark_that_is_gone_is_noticed() {
    for command in [&["FLUSHALL"][..], &["DEL", "{fn}:mark"]] {
        let mut master = Master::witnessed().await;
        master.command(command);
        assert!(is_quarantined(&master.state().await), "{command:?}");
        // Nor is it a vote the second time.
        assert!(is_quarantined(&master.state().await), "{command:?}");
    }
}

// Shows: R2.2.
#[tokio::test]
async fn a_mark_that_was_changed_is_noticed() {
    let mut master = Master::witnessed().await;
    let mark = master.command(&["GET", "{fn}:mark"]);
    let another = mark.as_text().unwrap().replacen(' ', " 0123", 1);
    master.command(&["SET", "{fn}:mark", &another]);
    assert!(is_quarantined(&master.state().await));
}

// Shows: E14, R2.1.
#[tokio::test]
async fn a_database_that_takes_the_place_of_another_is_judged_by_its_own_mark() {
    let mut master = Master::witnessed().await;
    let mut elsewhere = connect(&format!("{}/1", master.server.url())).await;
    let extend = [request(EXTEND, "nobody's", 1)];
    let answer = elsewhere.call(&keyspace(), &extend).await.unwrap();
    assert!(is_quarantined(&answer.standing.unwrap().state));
    master.command(&["SWAPDB", "0", "1"]);
    assert!(is_quarantined(&master.state().await));
    let answer = elsewhere.call(&keyspace(), &extend).await.unwrap();
    assert_eq!(answer.standing.unwrap().state, MarkState::Voting);
}

// Shows: R2.10.
#[tokio::test]
async fn a_node_that_votes_again_with_other_data_is_looked_at_once() {
    let mut master = Master::witnessed().await;
    master.command(&["DEBUG", "CHANGE-REPL-ID"]);
    assert!(is_quarantined(&master.state().await));
    master.vouch().await;
    master.witness().await;
}

// Shows: R2.1.
#[tokio::test]
async fn clients_of_another_policy_are_refused_though_the_mark_is_known() {
    let mut master = Master::witnessed().await;
    let other = Arc::new(Keyspace::new("{fn}", Quarantine::new(2 * TTL, 0.01)));
    let take = [request(acquire(1), "a", 1)];
    for _ in 0..2 {
        let answer = master.session.call(&other, &take).await.unwrap();
        assert_eq!(answer.replies, [Ok(Reply::PolicyMismatch)]);
        assert!(!master.exists("a"));
    }
    assert!(master.is_quick().await);
}

// Shows: R2.5.
#[tokio::test]
async fn libraries_of_two_versions_live_side_by_side() {
    let mut master = Master::witnessed().await;
    let [(name, code)] = &master.libraries()[..] else {
        panic!("there is one library");
    };
    master.command(&[
        "FUNCTION",
        "LOAD",
        &code.replace(name.as_str(), "redlock_9_ab"),
    ]);
    assert_eq!(master.libraries().len(), 2);
    assert!(master.is_quick().await, "nothing of its own was replaced");
    // The other one has to look for itself.
    let time = master.calls("time");
    let policy = keyspace().quarantine().to_wire();
    let call = [
        &["FCALL", "redlock_9_ab_keep", "2", "{fn}:mark", "{fn}:fence"][..],
        &[&policy, "60000 1000 0", "", "0"],
    ];
    let answer = master.command(&call.concat());
    assert_eq!(answer.as_array().unwrap()[0].as_integer(), Some(1));
    assert_eq!(master.calls("time"), time);
    let answer = master.command(&call.concat());
    assert!(answer.as_text().is_some(), "the short answer: {answer:?}");
    assert_eq!(master.calls("time"), time + 1);
}
