//! What only a Redis server can do to a node: forget its script, or hold a key that is no lease.

use redlock_core::node::{Node, RedisNode, Reply};
use redlock_sandbox::{Server, ServerBinary, ServerOptions};

use super::{TAKEN, acquire, ask, keyspace, release};

#[tokio::test]
async fn one_bad_key_does_not_hide_what_became_of_the_others() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let server = Server::start(&binary, ServerOptions::default()).expect("the server starts");
    server
        .command(&["HSET", "bad", "field", "value"])
        .expect("the server answers");
    let node = RedisNode::at(&server.url()).expect("the URL is valid");
    let mut session = node.connect().await.expect("the node is up");
    let requests = [
        acquire("a", 1),
        release("bad", 1),
        acquire("bad", 1),
        release("a", 1),
    ];
    let answer = session
        .call(&keyspace(), &requests)
        .await
        .expect("answered");
    let never = Reply::Held {
        is_shared: false,
        remaining: None,
        counter: 0,
        holder: None,
    };
    assert!(matches!(answer.replies[0], Ok(Reply::Taken { .. })));
    // It has no owner that could release it.
    assert_eq!(answer.replies[1], Ok(Reply::Missing));
    assert_eq!(answer.replies[2], Ok(never));
    assert_eq!(answer.replies[3], Ok(Reply::Done));
}

// Shows: R2.13.
#[tokio::test]
async fn a_flushed_script_costs_no_call_that_none_follows() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let server = Server::start(&binary, ServerOptions::default()).expect("the server starts");
    let node = RedisNode::at(&server.url()).expect("the URL is valid");
    let mut session = node.connect().await.expect("the node is up");
    ask(&mut *session, release("a", 1)).await;
    server
        .command(&["SCRIPT", "FLUSH"])
        .expect("the server answers");
    assert_eq!(ask(&mut *session, acquire("a", 1)).await, TAKEN);
    assert_eq!(ask(&mut *session, release("a", 1)).await, Reply::Done);

    // What follows on the connection must not be overtaken: of two calls, the first is not made again.
    server
        .command(&["SCRIPT", "FLUSH"])
        .expect("the server answers");
    let (first, second) = ([acquire("a", 1)], [release("a", 1)]);
    let first = session.call(&keyspace(), &first);
    let second = session.call(&keyspace(), &second);
    let (first, second) = tokio::join!(first, second);
    let error = first.expect_err("the script is gone");
    assert!(!error.may_have_run && !error.session_lost, "{error:?}");
    let released = second.expect("it is made again").replies;
    assert_eq!(released, [Ok(Reply::Missing)]);
}

/// What `EVAL` brings is dropped again by newer servers that have seen many scripts.
#[tokio::test]
async fn a_session_loads_the_script_to_stay() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let server = Server::start(&binary, ServerOptions::default()).expect("the server starts");
    let calls = |command: &str| {
        let info = server.command(&["INFO", "commandstats"]);
        let info = info.expect("the server answers");
        let line = format!("cmdstat_{command}:calls=");
        let text = info.as_text().expect("it is text").to_owned();
        let (_, rest) = text.split_once(&line)?;
        rest.split(',').next()?.parse::<u64>().ok()
    };
    let node = RedisNode::at(&server.url()).expect("the URL is valid");
    let mut session = node.connect().await.expect("the node is up");
    ask(&mut *session, release("a", 1)).await;
    assert_eq!(calls("eval"), None);
    assert_eq!(calls("evalsha"), Some(1));
    assert_eq!(
        calls("script|load"),
        Some(2),
        "one for calls, one for transactions"
    );
}
