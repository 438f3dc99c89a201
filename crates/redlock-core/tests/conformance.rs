//! The contract of a node, for every kind of node there is.
//!
//! The Redis side needs a real server and fails without one.

use std::{sync::Arc, time::Duration};

use redlock_core::{
    MemoryNode,
    node::{Node, OwnerId, RedisNode, Reply, Request, Session, Verb},
};
use redlock_sandbox::{Server, ServerBinary, ServerOptions};

const TTL: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(150);

fn request(verb: Verb, key: &str, owner: u8) -> Request {
    let owner = OwnerId::from_random([owner; 16]);
    Request {
        verb,
        key: key.into(),
        owner,
    }
}

fn acquire(key: &str, owner: u8) -> Request {
    request(Verb::Acquire { ttl: TTL }, key, owner)
}

fn extend(key: &str, owner: u8, ttl: Duration) -> Request {
    request(Verb::Extend { ttl }, key, owner)
}

fn release(key: &str, owner: u8) -> Request {
    request(Verb::Release, key, owner)
}

/// One reply, with the remaining time of a holder cut to whole seconds so that it can be compared.
async fn ask(session: &mut dyn Session, request: Request) -> Reply {
    let replies = session.call(&[request]).await.expect("the node answers");
    assert_eq!(replies.len(), 1);
    match replies[0].as_ref().expect("the operation is valid") {
        Reply::Held {
            remaining: Some(left),
        } => {
            // A real server has spent some milliseconds since.
            let rounded = Duration::from_secs(left.as_secs_f64().ceil() as u64);
            Reply::Held {
                remaining: Some(rounded),
            }
        }
        reply => *reply,
    }
}

const HELD: Reply = Reply::Held {
    remaining: Some(TTL),
};

async fn conforms(node: Arc<dyn Node>) {
    let mut session = node.connect().await.expect("the node is up");
    let session = &mut *session;

    // A key is one owner's.
    assert_eq!(ask(session, acquire("a", 1)).await, Reply::Done);
    assert_eq!(ask(session, acquire("a", 2)).await, HELD);
    assert_eq!(
        ask(session, acquire("a", 1)).await,
        HELD,
        "an owner acquires once"
    );
    assert_eq!(ask(session, acquire("b", 2)).await, Reply::Done);

    // s21: nothing happens to a key on another owner's behalf.
    assert_eq!(ask(session, release("a", 2)).await, HELD);
    assert_eq!(ask(session, extend("a", 2, SHORT)).await, HELD);
    assert_eq!(ask(session, acquire("a", 3)).await, HELD);

    // s04: an extension never creates a key.
    assert_eq!(
        ask(session, extend("missing", 1, TTL)).await,
        Reply::Missing
    );
    assert_eq!(ask(session, release("missing", 1)).await, Reply::Missing);
    assert_eq!(ask(session, acquire("missing", 2)).await, Reply::Done);

    // s27: times to live are milliseconds, and an extension counts from now.
    assert_eq!(ask(session, extend("a", 1, SHORT)).await, Reply::Done);
    assert_eq!(ask(session, extend("b", 2, 3 * TTL)).await, Reply::Done);
    let sixty = Reply::Held {
        remaining: Some(3 * TTL),
    };
    assert_eq!(ask(session, acquire("b", 1)).await, sixty);
    tokio::time::sleep(SHORT + Duration::from_millis(20)).await;
    assert_eq!(ask(session, extend("a", 1, TTL)).await, Reply::Missing);
    assert_eq!(ask(session, acquire("a", 2)).await, Reply::Done);

    // Operations of a call, and calls of a session, take effect in order.
    let order = [
        acquire("c", 1),
        acquire("c", 2),
        release("c", 1),
        acquire("c", 2),
    ];
    let first = session.call(&order);
    let second = session.call(&[release("c", 2), acquire("c", 3)]);
    let (first, second) = tokio::join!(first, second);
    let (first, second) = (first.expect("answered"), second.expect("answered"));
    assert!(matches!(first[1], Ok(Reply::Held { .. })), "{first:?}");
    assert_eq!([&first[0], &first[2], &first[3]], [&Ok(Reply::Done); 3]);
    assert_eq!(second, [Ok(Reply::Done), Ok(Reply::Done)]);

    // A call may be empty, or as long as the client makes them.
    assert_eq!(session.call(&[]).await.expect("answered"), []);
    let many: Vec<_> = (0..16)
        .map(|key| acquire(&format!("many {key}"), 1))
        .collect();
    assert_eq!(
        session.call(&many).await.expect("answered"),
        vec![Ok(Reply::Done); 16]
    );
}

#[tokio::test]
async fn a_node_in_memory_conforms() {
    conforms(Arc::new(MemoryNode::new())).await;
}

#[tokio::test]
async fn a_redis_server_conforms() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let server = Server::start(&binary, ServerOptions::default()).expect("the server starts");
    conforms(Arc::new(
        RedisNode::at(&server.url()).expect("the URL is valid"),
    ))
    .await;
}

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
    let replies = session.call(&requests).await.expect("answered");
    assert_eq!(replies[0], Ok(Reply::Done));
    assert!(
        replies[1]
            .as_ref()
            .is_err_and(|error| error.starts_with("WRONGTYPE")),
        "{replies:?}"
    );
    assert_eq!(replies[2], Ok(Reply::Held { remaining: None }));
    assert_eq!(replies[3], Ok(Reply::Done));
}

#[tokio::test]
async fn a_flushed_script_costs_one_call() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let server = Server::start(&binary, ServerOptions::default()).expect("the server starts");
    let node = RedisNode::at(&server.url()).expect("the URL is valid");
    let mut session = node.connect().await.expect("the node is up");
    server
        .command(&["SCRIPT", "FLUSH"])
        .expect("the server answers");
    let error = session
        .call(&[acquire("a", 1)])
        .await
        .expect_err("the script is gone");
    assert!(!error.may_have_run && !error.session_lost, "{error:?}");
    assert_eq!(ask(&mut *session, acquire("a", 1)).await, Reply::Done);
    let cached = session.call(&[release("a", 1)]).await.expect("answered");
    assert_eq!(cached, [Ok(Reply::Done)]);
}
