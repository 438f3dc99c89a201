//! A foreign value at the lock's key: it is named, left alone, and does not affect other locks.

use std::time::Duration;

use redlock_core::{AcquireErrorKind, ExtendErrorKind, NodeAnswer};
use redlock_tests::{Nodes, client};

const TTL: Duration = Duration::from_secs(10);
const KEY: &str = "{redlock}:lock:a";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_another_type_is_named_and_left_alone_and_others_go_on() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    for node in 0..3 {
        nodes.ask(node, &["HSET", KEY, "field", "value"]);
    }
    // Side by side, so that they share calls to the nodes.
    let (bad, good, better) = tokio::join!(
        redlock.try_acquire("a"),
        redlock.try_acquire("b"),
        redlock.try_acquire("c")
    );
    let error = bad.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Contended, "{error}");
    let never = NodeAnswer::Held {
        remaining: None,
        holder: None,
    };
    let named = error.reports().iter().filter(|r| r.answer == never).count();
    assert_eq!(named, 3, "{error}");
    assert!(
        error.to_string().contains("a key that never expires"),
        "{error}"
    );
    good.unwrap().release().await.unwrap();
    better.unwrap().release().await.unwrap();
    for node in 0..3 {
        assert_eq!(nodes.ask(node, &["HGET", KEY, "field"]), "value");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_becomes_another_type_is_no_key_of_ours() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    let guard = redlock.acquire("a").await.unwrap();
    let other = redlock.acquire("b").await.unwrap();
    for node in 0..3 {
        nodes.ask(node, &["DEL", KEY]);
        nodes.ask(node, &["HSET", KEY, "field", "value"]);
    }
    let (bad, good) = tokio::join!(guard.extend(), other.extend());
    let error = bad.unwrap_err();
    assert_eq!(error.kind(), ExtendErrorKind::Lost, "{error}");
    let missing = NodeAnswer::Missing;
    let named = error.reports().iter().filter(|r| r.answer == missing);
    assert_eq!(named.count(), 3, "{error}");
    good.unwrap();
    guard.release().await.unwrap_err();
    other.release().await.unwrap();
    for node in 0..3 {
        assert_eq!(nodes.ask(node, &["HGET", KEY, "field"]), "value");
    }
}
