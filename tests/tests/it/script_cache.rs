//! Servers that forget the scripts: the client loads them again, unnoticed by its callers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use redlock_core::{AcquireOptions, Wait};
use redlock_tests::{Nodes, client, eventually, now};
use tokio::{task::JoinSet, time::sleep};

const TTL: Duration = Duration::from_secs(6);

fn flush(nodes: &Nodes) {
    nodes.ask_all(&["SCRIPT", "FLUSH"]);
}

/// How many calls of the scripts there were.
fn calls(nodes: &Nodes) -> u64 {
    let all = ["evalsha", "eval"].into_iter();
    all.map(|command| nodes.calls_in_all(command)).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_and_released_though_the_scripts_are_flushed() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    let guard = redlock.acquire("a").await.unwrap();
    flush(&nodes);
    let remaining = || guard.lease().remaining();
    eventually("past the time of renewal", TTL, remaining, |left| {
        *left < TTL * 3 / 4
    })
    .await;
    eventually("a renewal", TTL / 2, remaining, |left| *left > TTL * 9 / 10).await;

    flush(&nodes);
    guard.release().await.unwrap();
    nodes.become_empty(TTL / 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_guard_releases_though_the_scripts_are_flushed() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    let guard = redlock.acquire("a").await.unwrap();
    flush(&nodes);
    drop(guard);
    nodes.become_empty(TTL / 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_with_a_wait_succeeds_by_its_second_attempt_after_a_flush() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    for _ in 0..10 {
        flush(&nodes);
        let before = calls(&nodes);
        let wait = AcquireOptions::new().wait(Wait::UpTo(TTL));
        let guard = redlock.acquire_with("a", wait).await.unwrap();
        let asked = calls(&nodes) - before;
        // Two rounds, the releases of the first, and perhaps a heartbeat.
        assert!(asked <= 4 * 5, "{asked} calls");
        guard.release().await.unwrap();
        nodes.become_empty(TTL / 6).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_caller_sees_an_error_while_scripts_are_flushed_under_load() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    let until = now() + Duration::from_secs(3);
    let acquired = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for task in 0..32 {
        let (redlock, acquired) = (redlock.clone(), Arc::clone(&acquired));
        tasks.spawn(async move {
            // Shorter than the time to live: a key that stayed behind would be seen.
            let wait = AcquireOptions::new().wait(Wait::UpTo(TTL / 2));
            while now() < until {
                let key = format!("key-{}", task % 4);
                let guard = redlock.acquire_with(key, wait.clone()).await.unwrap();
                guard.release().await.unwrap();
                acquired.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let mut flushes = 0;
    while now() < until {
        flush(&nodes);
        flushes += 1;
        sleep(Duration::from_millis(100)).await;
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    eprintln!("{acquired:?} acquisitions during {flushes} flushes");
    assert!(flushes >= 10 && acquired.load(Ordering::Relaxed) > 300);
    nodes.become_empty(TTL / 6).await;
}
