//! Callers that go away at any point leave nothing behind on the nodes.

use std::time::Duration;

use redlock_core::{AcquireOptions, Redlock, Wait};
use redlock_tests::{Nodes, Proxies, Random, client, eventually, polled, wide_client};
use tokio::time::{sleep, timeout};

/// Far longer than any clean-up here may take, so that no key ends by itself.
const TTL: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l03_an_acquire_dropped_after_any_poll_leaves_no_key() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    let mut won = 0;
    for _ in 0..30 {
        for polls in 0..4 {
            let acquire = redlock.acquire("a");
            won += u32::from(polled(acquire, polls).await.is_some());
            nodes.become_empty(SOON).await;
        }
    }
    // Both sides of the end were tried.
    assert!((1..120).contains(&won), "{won} of 120 were not cut short");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l03_an_acquire_dropped_at_any_moment_leaves_no_key() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    let mut random = Random::new();
    for _ in 0..30 {
        for key in 0..8 {
            let limit = random.below_duration(Duration::from_millis(3));
            drop(timeout(limit, redlock.acquire(format!("key-{key}"))).await);
        }
        nodes.become_empty(SOON).await;
    }
}

// Shows: T5.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l03_an_acquire_dropped_on_each_leg_of_a_slow_network_leaves_no_key() {
    let nodes = Nodes::start(3);
    let proxies = Proxies::start(nodes.iter().map(|node| node.address())).await;
    let redlock = wide_client(proxies.urls(), TTL).await;
    for proxy in &proxies.0 {
        proxy.delay_requests(Duration::from_millis(60));
        proxy.delay_replies(Duration::from_millis(60));
    }
    for limit in [1, 30, 59, 61, 90, 119, 121] {
        let grants = nodes.grants_in_all();
        let acquire = redlock.acquire("a");
        drop(timeout(Duration::from_millis(limit), acquire).await);
        // Requests that were under way when it was dropped arrive all the same.
        let look = || nodes.grants_in_all();
        eventually("all are asked", SOON, look, |all| *all == grants + 3).await;
        nodes.become_empty(SOON).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l03_a_waiter_that_goes_away_takes_back_what_it_got_and_asks_no_more() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    // Another holds a majority, so that each attempt takes two nodes and has to give them back.
    for node in 0..3 {
        nodes.ask(node, &["SET", "{redlock}:lock:a", "other", "PX", "60000"]);
    }
    let mut random = Random::new();
    for _ in 0..20 {
        let options = AcquireOptions::new().wait(Wait::UpTo(TTL));
        let limit = random.below_duration(Duration::from_millis(80));
        let waited = timeout(limit, redlock.acquire_with("a", options)).await;
        assert!(waited.is_err(), "it is held by another: {waited:?}");
    }
    let others = |keys: &Vec<String>| keys.len() == 3;
    eventually("only the other's keys", SOON, || nodes.keys(), others).await;
    assert_eq!(nodes.ask(0, &["GET", "{redlock}:lock:a"]), "other");
    let grants = nodes.grants_in_all();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(nodes.grants_in_all(), grants, "nobody waits any more");
}

// Shows: T5.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l03_a_dropped_guard_leaves_no_key_wherever_it_is_dropped() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    let guard = redlock.acquire("a").await.unwrap();
    drop(guard);
    nodes.become_empty(SOON).await;

    let guard = redlock.acquire("a").await.unwrap();
    let thread = std::thread::spawn(move || drop(guard));
    thread.join().unwrap();
    nodes.become_empty(SOON).await;

    let guard = redlock.acquire("a").await.unwrap();
    let mut work = Box::pin(async move { guard.run(std::future::pending::<()>()).await });
    assert!(futures_util::poll!(work.as_mut()).is_pending());
    drop(work);
    nodes.become_empty(SOON).await;

    let guard = redlock.acquire("a").await.unwrap();
    drop(redlock);
    drop(guard);
    nodes.become_empty(SOON).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l06_a_release_dropped_after_any_poll_releases() {
    let nodes = Nodes::start(5);
    let redlock: Redlock = client(nodes.urls(), TTL).await;
    for _ in 0..30 {
        for polls in 0..4 {
            let guard = redlock.acquire("a").await.unwrap();
            polled(guard.release(), polls).await;
            nodes.become_empty(SOON).await;
        }
    }
}
