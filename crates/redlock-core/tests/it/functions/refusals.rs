//! Functions that are gone, or that the server does not run at the moment: the script stands in.

use redlock_core::node::Reply;
use redlock_proto::MarkState;

use crate::functions::fixtures::{EXTEND, Master, RELEASE, acquire, keyspace, request};

// Shows: R1.6.
#[tokio::test]
async fn a_library_that_was_dropped_costs_no_call_and_is_loaded_again() {
    let mut master = Master::opened().await;
    master.command(&["FUNCTION", "FLUSH"]);
    let take = master.call(&[request(acquire(1), "a", 1)]).await;
    assert_eq!(take.replies, [Ok(Reply::Taken { counter: 1 })]);
    assert_eq!(take.standing.unwrap().state, MarkState::Voting);
    let release = master.call(&[request(RELEASE, "a", 1)]).await;
    assert_eq!(release.replies, [Ok(Reply::Done)]);
    assert!(master.libraries().is_empty());

    master.inspect().await;
    assert_eq!(master.libraries().len(), 1);
    assert!(master.is_called_by_functions().await);
}

// Shows: R1.9.
#[tokio::test]
async fn a_call_that_others_follow_is_not_made_again() {
    let mut master = Master::opened().await;
    for flush in [
        &[&["FUNCTION", "FLUSH"][..]][..],
        &[&["FUNCTION", "FLUSH"], &["SCRIPT", "FLUSH"]],
    ] {
        master.inspect().await;
        for command in flush {
            master.command(command);
        }
        let (first, second) = ([request(acquire(1), "a", 1)], [request(RELEASE, "a", 1)]);
        let first = master.session.call(&keyspace(), &first);
        let second = master.session.call(&keyspace(), &second);
        let (first, second) = tokio::join!(first, second);
        let error = first.expect_err("there is no such function");
        assert!(!error.may_have_run && !error.session_lost, "{error:?}");
        let released = second.expect("it is made again").replies;
        assert_eq!(released, [Ok(Reply::Missing)]);
    }
}

// Shows: R1.9.
#[tokio::test]
async fn without_memory_the_script_stands_in() {
    let mut master = Master::opened().await;
    for (proposal, key) in [(1, "a"), (2, "b")] {
        let take = master.call(&[request(acquire(proposal), key, 1)]).await;
        assert_eq!(take.replies, [Ok(Reply::Taken { counter: proposal })]);
    }
    master.command(&["SET", "ballast", &"x".repeat(1 << 20)]);
    master.command(&["CONFIG", "SET", "maxmemory", "1mb"]);

    // Where another call follows, it does not.
    let (first, second) = ([request(acquire(3), "c", 1)], [request(RELEASE, "c", 1)]);
    let first = master.session.call(&keyspace(), &first);
    let second = master.session.call(&keyspace(), &second);
    let (first, second) = tokio::join!(first, second);
    let error = first.expect_err("there is no memory");
    assert!(error.refuses_writes && !error.may_have_run, "{error:?}");
    assert_eq!(second.unwrap().replies, [Ok(Reply::Missing)]);

    // It does one without the other.
    let scripts = master.calls("evalsha");
    let requests = [
        request(acquire(3), "c", 1),
        request(EXTEND, "a", 1),
        request(RELEASE, "b", 1),
    ];
    let answer = master.call(&requests).await;
    assert_eq!(answer.standing.unwrap().state, MarkState::Voting);
    assert!(answer.replies[0].as_ref().unwrap_err().starts_with("OOM "));
    assert_eq!(answer.replies[1..], [Ok(Reply::Done), Ok(Reply::Done)]);
    assert_eq!(master.calls("evalsha"), scripts + 1);

    // As long as there is none, functions are not called.
    master.inspect().await;
    assert!(!master.is_called_by_functions().await);
    master.command(&["CONFIG", "SET", "maxmemory", "0"]);
    master.inspect().await;
    assert!(master.is_called_by_functions().await);
}
