//! When nodes are called by functions, and when by the script.

use std::sync::Arc;

use redlock_core::node::{Keyspace, Node, RedisNode, Reply, Request};
use redlock_proto::{NodeVerb, Quarantine};
use redlock_sandbox::ServerOptions;

use crate::functions::fixtures::{
    EXTEND, Master, RELEASE, TTL, acquire, connect, debuggable, keyspace, request,
};

/// Returns how many calls were made by functions and how many by the script.
fn calls(master: &Master) -> (u64, u64) {
    (
        master.calls("fcall"),
        master.calls("evalsha") + master.calls("eval"),
    )
}

/// Acquires, extends and releases; returns how many of the calls were made by functions and how many by the script.
async fn use_once(master: &mut Master) -> (u64, u64) {
    let before = calls(master);
    let take = master.call(&[request(acquire(1), "a", 1)]).await;
    assert!(matches!(take.replies[..], [Ok(Reply::Taken { .. })]));
    for verb in [EXTEND, RELEASE] {
        let done = master.call(&[request(verb, "a", 1)]).await;
        assert!(matches!(&done.replies[..], [Ok(reply)] if reply.is_done()));
    }
    let after = calls(master);
    (after.0 - before.0, after.1 - before.1)
}

#[tokio::test]
async fn where_restarts_are_delayed_each_call_is_made_by_functions() {
    let mut master = Master::opened().await;
    assert_eq!(use_once(&mut master).await, (3, 0));
    master.inspect().await;
    assert_eq!(calls(&master).1, 0, "nor is anything else");
}

#[tokio::test]
async fn where_restarts_are_not_delayed_no_library_is_loaded() {
    let mut master = Master::start(debuggable()).await;
    let keyspace = Arc::new(Keyspace::new("{fn}", Quarantine::new(3 * TTL, 0.01)));
    for _ in 0..2 {
        let inspect = [Request::Node(NodeVerb::Inspect)];
        let answer = master.session.call(&keyspace, &inspect).await.unwrap();
        assert!(matches!(answer.replies[..], [Ok(Reply::ServerInfo(_))]));
    }
    assert_eq!(calls(&master), (0, 2));
    assert!(master.libraries().is_empty());
}

#[tokio::test]
async fn another_client_finds_the_library_and_loads_none() {
    let mut master = Master::opened().await;
    assert_eq!(master.calls("function|load"), 1);
    master.reconnect().await;
    master.inspect().await;
    assert!(master.is_called_by_functions().await);
    assert_eq!(master.calls("function|load"), 1);
}

#[tokio::test]
async fn without_functions_none_is_loaded() {
    let mut master = Master::start(debuggable()).await;
    let node = RedisNode::at(&master.server.url()).unwrap();
    master.session = node.without_functions().connect().await.unwrap();
    master.open().await;
    assert_eq!(use_once(&mut master).await, (0, 3));
    assert!(master.libraries().is_empty());
}

// Shows: R1.8.
#[tokio::test]
async fn both_forms_serve_one_namespace() {
    let mut master = Master::opened().await;
    let node = RedisNode::at(&master.server.url()).unwrap();
    let mut script = node.without_functions().connect().await.unwrap();
    let held = |counter| move |reply: &Result<Reply, _>| matches!(reply, Ok(Reply::Held { counter: seen, .. }) if *seen == counter);
    let take = [request(acquire(7), "a", 1)];
    let taken = [Ok(Reply::Taken { counter: 7 })];
    assert_eq!(master.call(&take).await.replies, taken);
    let other = [request(acquire(9), "a", 2)];
    let refused = script.call(&keyspace(), &other).await.unwrap();
    assert!(refused.replies.iter().all(held(7)), "{refused:?}");
    let release = [request(RELEASE, "a", 1)];
    let released = script.call(&keyspace(), &release).await.unwrap();
    assert_eq!(released.replies, [Ok(Reply::Done)]);
    let taken = script.call(&keyspace(), &other).await.unwrap();
    assert_eq!(taken.replies, [Ok(Reply::Taken { counter: 9 })]);
    let refused = master.call(&[request(acquire(11), "a", 3)]).await;
    assert!(refused.replies.iter().all(held(9)), "{refused:?}");
}

#[tokio::test]
async fn servers_that_know_no_functions_are_called_by_the_script() {
    for unknown in ["FCALL", "FUNCTION"] {
        let options = ServerOptions::default()
            .argument("--rename-command")
            .argument(unknown)
            .argument("");
        let mut master = Master::start(options).await;
        master.open().await;
        assert_eq!(use_once(&mut master).await.1, 3, "without {unknown}");
    }
}

#[tokio::test]
async fn users_who_may_not_call_functions_call_the_script() {
    let rights: Vec<&str> = RedisNode::RIGHTS_FOR_FUNCTIONS.split(' ').collect();
    let all: Vec<&str> = [RedisNode::RIGHTS.split(' ').collect(), rights.clone()].concat();
    for missing in [None].into_iter().chain(rights.into_iter().map(Some)) {
        let mut master = Master::start(ServerOptions::default()).await;
        let mut user = vec!["ACL", "SETUSER", "lock", "on", ">sesame", "~{fn}:*"];
        user.extend(["resetchannels", "-@all"]);
        user.extend(all.iter().filter(|right| Some(**right) != missing));
        master.command(&user);
        let url = format!("redis://lock:sesame@{}", master.server.address());
        master.session = connect(&url).await;
        master.open().await;
        let (functions, scripts) = use_once(&mut master).await;
        match missing {
            None => assert_eq!((functions, scripts), (3, 0)),
            Some(_) => assert_eq!((functions, scripts), (0, 3), "without {missing:?}"),
        }
        // What is refused is not asked for again and again: it would fill the log of the server.
        let before = denied(&master);
        master.inspect().await;
        use_once(&mut master).await;
        assert_eq!(denied(&master), before, "without {missing:?}");
    }
}

/// Returns the number of refusals in the log of what users may not do.
fn denied(master: &Master) -> usize {
    let log = master.command(&["ACL", "LOG", "100"]);
    let entries = log.as_array().unwrap().iter();
    // Each counts how often that was.
    let counts = entries.map(|entry| entry.as_array().unwrap()[1].as_integer().unwrap());
    usize::try_from(counts.sum::<i64>()).unwrap()
}

#[tokio::test]
async fn users_who_may_not_load_the_library_call_it_if_it_is_there() {
    let mut master = Master::opened().await;
    assert_eq!(master.libraries().len(), 1);
    let mut user = vec!["ACL", "SETUSER", "lock", "on", ">sesame", "~{fn}:*"];
    user.extend(["resetchannels", "-@all", "+fcall"]);
    user.extend(RedisNode::RIGHTS.split(' '));
    master.command(&user);
    let url = format!("redis://lock:sesame@{}", master.server.address());
    master.session = connect(&url).await;
    master.inspect().await;
    assert_eq!(use_once(&mut master).await, (3, 0));
}

// Shows: R1.7.
#[tokio::test]
async fn a_library_of_this_name_that_somebody_else_made_is_left_alone() {
    let mut master = Master::opened().await;
    let (name, _) = master.libraries().remove(0);
    let theirs = format!("#!lua name={name}\nredis.register_function('theirs', function() end)");
    master.command(&["FUNCTION", "LOAD", "REPLACE", &theirs]);
    master.reconnect().await;
    master.inspect().await;
    assert_eq!(use_once(&mut master).await, (0, 3));
    assert_eq!(master.libraries(), [(name, theirs)]);
}

// Shows: R1.7.
#[tokio::test]
async fn libraries_of_two_versions_live_side_by_side() {
    let mut master = Master::opened().await;
    let [(name, code)] = &master.libraries()[..] else {
        panic!("there is one library");
    };
    let other = code.replace(name.as_str(), "redlock_9_ab");
    master.command(&["FUNCTION", "LOAD", &other]);
    assert_eq!(master.libraries().len(), 2);
    assert_eq!(use_once(&mut master).await, (3, 0), "nothing was replaced");
    let ready = master.command(&["FCALL", "redlock_9_ab_ready", "0"]);
    assert_eq!(ready.as_text(), Some("ready"));
}

#[test]
fn the_guide_names_the_rights() {
    let guide = include_str!("../../../docs/guide/servers.md");
    assert!(guide.contains(RedisNode::RIGHTS_FOR_FUNCTIONS));
}
