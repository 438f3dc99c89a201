//! Waiting costs the nodes little, and it ends.

use std::time::Duration;

use redlock_core::{AcquireErrorKind, AcquireOptions, Renewal, Wait};
use redlock_tests::{Nodes, client, now};
use tokio::task::JoinSet;

const TTL: Duration = Duration::from_secs(30);
const WAIT: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l08_sixty_four_waiters_do_not_spin() {
    let nodes = Nodes::start(5);
    let (holder, waiter) = (
        client(nodes.urls(), TTL).await,
        client(nodes.urls(), TTL).await,
    );
    let manual = AcquireOptions::new().renewal(Renewal::Manual);
    let held = holder.acquire_with("a", manual).await.unwrap();
    let calls = || nodes.calls(0, "evalsha") + nodes.calls(0, "eval");
    let before = calls();
    let started = now();
    let mut waiters = JoinSet::new();
    for _ in 0..64 {
        let waiter = waiter.clone();
        waiters.spawn(async move {
            let wait = AcquireOptions::new().wait(Wait::UpTo(WAIT));
            let error = waiter.acquire_with("a", wait).await.unwrap_err();
            (error.kind(), now() - started)
        });
    }
    while let Some(ended) = waiters.join_next().await {
        let (kind, took) = ended.unwrap();
        assert_eq!(kind, AcquireErrorKind::Contended);
        assert!(took < WAIT + Duration::from_secs(1), "{took:?}");
    }
    let calls = calls() - before;
    eprintln!("{calls} calls to a node in {WAIT:?}");
    // One contender for all of them, which tries some eighteen times a second, and takes back what a node outside
    // of the majority may have granted.
    assert!((2..100).contains(&calls), "{calls} calls in {WAIT:?}");
    held.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_in_another_process_gets_a_released_lease_soon() {
    let nodes = Nodes::start(5);
    let (holder, waiter) = (
        client(nodes.urls(), TTL).await,
        client(nodes.urls(), TTL).await,
    );
    for _ in 0..5 {
        let held = holder.acquire("a").await.unwrap();
        let wait = AcquireOptions::new().wait(Wait::UpTo(TTL));
        let waiting = async {
            let guard = waiter.acquire_with("a", wait).await.unwrap();
            (guard, now())
        };
        let releasing = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            held.release().await.unwrap();
            now()
        };
        let ((guard, acquired), released) = tokio::join!(waiting, releasing);
        let took = acquired.saturating_sub(released);
        assert!(took < Duration::from_secs(1), "{took:?}");
        guard.release().await.unwrap();
    }
}

/// Waiters of Redisson slept until a message told them that the key is free, also where the message was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l07_a_waiter_that_nobody_tells_gets_the_lease_long_before_its_time_to_live() {
    let nodes = Nodes::start(3);
    let (holder, waiter) = (
        client(nodes.urls(), TTL).await,
        client(nodes.urls(), TTL).await,
    );
    let manual = AcquireOptions::new().renewal(Renewal::Manual);
    let held = holder.acquire_with("a", manual).await.unwrap();
    let wait = AcquireOptions::new().wait(Wait::UpTo(TTL));
    let deleting = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        nodes.ask_all(&["DEL", "{redlock}:lock:a"]);
        now()
    };
    let (guard, deleted) = tokio::join!(waiter.acquire_with("a", wait), deleting);
    let took = now().saturating_sub(deleted);
    assert!(took < TTL / 3, "{took:?}");
    guard.unwrap().release().await.unwrap();
    drop(held);
}
