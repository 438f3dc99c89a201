//! A foreign value at the lock's key: it is named, left alone, and does not affect other locks.

use std::time::Duration;

use redlock_core::{AcquireErrorKind, ExtendErrorKind, NodeAnswer};
use redlock_tests::{Nodes, builder, client, within};

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
    let never = NodeAnswer::Held {
        remaining: None,
        holder: None,
    };
    // An attempt does not wait for long for a node that answers later than a majority, one of which has refused.
    let all_are_named = async {
        let mut refused = bad;
        loop {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), AcquireErrorKind::Contended, "{error}");
            let foreign = error.reports()[..3].iter().map(|report| &report.answer);
            let named = foreign.clone().filter(|answer| **answer == never).count();
            let is_late = |answer: &&NodeAnswer| matches!(answer, NodeAnswer::Reachable);
            assert_eq!(named + foreign.filter(is_late).count(), 3, "{error}");
            if named == 3 {
                return error.to_string();
            }
            refused = redlock.try_acquire("a").await;
        }
    };
    let error = within("each of the three is named", TTL, all_are_named).await;
    assert!(error.contains("a key that never expires"), "{error}");
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

/// How much of a server's memory its scripts have, in bytes.
fn memory_of_scripts(nodes: &Nodes) -> u64 {
    let info = nodes.ask(0, &["INFO", "memory"]);
    let mut lines = info.lines();
    let used = lines.find_map(|line| line.strip_prefix("used_memory_lua:"));
    used.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_value_of_another_program_is_never_read_whole() {
    const MB: usize = 1_000_000;
    let nodes = Nodes::start(1);
    let long = "f".repeat(20 * MB);
    let described = || builder(nodes.urls(), TTL).expert(|expert| expert.verbatim_keys = true);
    let redlock = described().build().await.unwrap();
    redlock.dangerous_bless().await;
    let guard = redlock.try_acquire("a").await.unwrap();
    nodes.ask(0, &["SET", "a", &long]);
    nodes.ask(0, &["SET", "b", &long]);
    let before = memory_of_scripts(&nodes);
    for key in ["a", "b"] {
        let other = described().build().await.unwrap();
        let error = other.try_acquire(key).await.unwrap_err();
        assert_eq!(error.kind(), AcquireErrorKind::Contended, "{error}");
    }
    let several = redlock.acquire_all(["b", "c"]);
    let shared = redlock.acquire_shared("b");
    let limit = Duration::from_millis(200);
    assert!(tokio::time::timeout(limit, several).await.is_err());
    assert!(tokio::time::timeout(limit, shared).await.is_err());
    guard.extend().await.unwrap_err();
    guard.release().await.unwrap_err();
    let grown = memory_of_scripts(&nodes).saturating_sub(before);
    assert!(grown < MB as u64, "{grown} bytes");
    assert_eq!(nodes.ask(0, &["STRLEN", "a"]), long.len().to_string());
    nodes.ask(0, &["DEL", "a", "b"]);
    redlock
        .try_acquire("b")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}
