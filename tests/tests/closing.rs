//! Closing a client: waiters are told, releases are made, nothing stays behind.
//!
//! Its threads are counted, so it is the only test of its process.

use std::{fs, time::Duration};

use redlock_core::{AcquireErrorKind, AcquireOptions, Wait};
use redlock_tests::{Nodes, client, eventually, now, within};
use tokio::task::JoinSet;

const TTL: Duration = Duration::from_secs(30);

/// The threads of this process that are clients'.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("this system has /proc");
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    let names = tasks.filter_map(|task| name(task.ok()?));
    names.filter(|name| name.trim_end() == "redlock").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_client_tells_its_waiters_at_once_releases_and_ends_its_thread() {
    let nodes = Nodes::start(5);
    let other = client(nodes.urls(), TTL).await;
    let redlock = client(nodes.urls(), TTL).await;
    assert_eq!(threads(), 2);
    let theirs = other.acquire("theirs").await.unwrap();
    let ours = redlock.acquire("ours").await.unwrap();
    let dropped = redlock.acquire("dropped").await.unwrap();

    // Waiters for another client, and for each other in the local queue.
    let mut waiters = JoinSet::new();
    for key in ["theirs", "theirs", "theirs", "ours", "ours"] {
        let redlock = redlock.clone();
        waiters.spawn(async move {
            let wait = AcquireOptions::new().wait(Wait::UpTo(TTL));
            let ended = redlock.acquire_with(key, wait).await;
            (ended.unwrap_err().kind(), now())
        });
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let subscribed = || {
        let listed = nodes.ask_all(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        listed.iter().filter(|listed| !listed.is_empty()).count()
    };
    assert_eq!(subscribed(), 5, "it waits in line");
    drop(dropped);
    let closed = now();
    within("closing", Duration::from_secs(2), redlock.close()).await;
    let keys = nodes.keys();
    assert!(!keys.iter().any(|key| key.ends_with("dropped")), "{keys:?}");
    while let Some(waiter) = waiters.join_next().await {
        let (kind, told) = waiter.unwrap();
        assert_eq!(kind, AcquireErrorKind::Closed);
        let took = told - closed;
        assert!(took < Duration::from_millis(500), "told after {took:?}");
    }
    let second = Duration::from_secs(1);
    eventually("the subscriptions", second, subscribed, |left| *left == 0).await;
    let late = redlock.acquire("late").await.unwrap_err();
    assert_eq!(late.kind(), AcquireErrorKind::Closed);

    // What is held stays held, and is released as ever.
    assert!(ours.lease().is_held());
    ours.extend().await.unwrap();
    ours.release().await.unwrap();
    theirs.release().await.unwrap();
    within("closing again", Duration::from_secs(2), redlock.close()).await;
    nodes.become_empty(Duration::from_secs(2)).await;

    drop(redlock);
    eventually("its thread ends", Duration::from_secs(2), threads, |left| {
        *left == 1
    })
    .await;
    drop(other);
    eventually("all threads end", Duration::from_secs(2), threads, |left| {
        *left == 0
    })
    .await;
}
