//! Leases that wait for their next holder in this process.

use std::task::Poll;

use futures_util::poll;
use redlock_core::{AcquireErrorKind, AcquireOptions, Wait};
use tokio::time::sleep;

use crate::paused_time::fixtures::{Faults, FaultyNode, MS, SECOND, client, faulty, keys, settle};

fn asked(nodes: &[FaultyNode]) -> usize {
    nodes.iter().map(FaultyNode::requests).sum()
}

fn patient() -> AcquireOptions {
    AcquireOptions::new().wait(Wait::UpTo(60 * SECOND))
}

#[tokio::test(start_paused = true)]
async fn an_extension_that_its_holder_has_given_up_does_not_extend_a_parked_lease() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    let mut waiting = Box::pin(redlock.acquire_with("key", patient()));
    assert!(poll!(waiting.as_mut()).is_pending());
    settle().await;
    let before = asked(&nodes);
    let mut extension = Box::pin(guard.extend());
    assert!(poll!(extension.as_mut()).is_pending());
    drop(extension);
    // The driver hears of both only now.
    drop(guard);
    sleep(10 * MS).await;
    assert_eq!(asked(&nodes), before);
    assert!(waiting.await.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_while_it_is_parked_is_nobodys() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let guard = redlock.acquire("key").await.unwrap();
    let mut waiting = Box::pin(redlock.acquire_with("key", patient()));
    assert!(poll!(waiting.as_mut()).is_pending());
    for node in &nodes {
        node.set(Faults::late_requests(50 * MS));
    }
    let mut extension = Box::pin(guard.extend());
    assert!(poll!(extension.as_mut()).is_pending());
    sleep(10 * MS).await;
    drop(extension);
    // The nodes lose the key before the request arrives that would extend it.
    for node in &nodes {
        node.node.drop_locks();
    }
    drop(guard);
    sleep(SECOND).await;
    nodes.iter().for_each(FaultyNode::heal);
    let theirs = other.try_acquire("key").await.unwrap();
    let ours = poll!(waiting.as_mut());
    let ours = matches!(&ours, Poll::Ready(Ok(guard)) if guard.is_held());
    assert!(theirs.is_held() && !ours);
}

/// Has a lease pass on `hops` times and once more while the driver sees none of it, and then hears that the lease is
/// lost; returns whether the last caller gets it all the same, while another client has the key.
async fn is_handed_out_after_a_loss(hops: usize) -> bool {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let options = patient().ttl(400 * MS);
    let first = redlock.acquire_with("key", options.clone()).await;
    let first = first.expect("it is free");
    let wait = |_| Box::pin(redlock.acquire_with("key", options.clone()));
    let mut waiting: Vec<_> = (0..=hops).map(wait).collect();
    for waiter in &mut waiting {
        assert!(poll!(waiter.as_mut()).is_pending());
    }
    settle().await;
    // The renewal is due after 133 ms; its answers come 60 ms later, and say that the key is gone.
    for node in &nodes {
        node.set(Faults::late_replies(60 * MS));
        node.node.drop_locks();
    }
    sleep(150 * MS).await;
    settle().await;
    assert!(first.is_held());
    // The driver has no turn between these.
    drop(first);
    for mut waiter in waiting.drain(..hops) {
        let Poll::Ready(Ok(guard)) = poll!(waiter.as_mut()) else {
            panic!("it was handed over")
        };
        drop(guard);
    }
    sleep(70 * MS).await;
    nodes.iter().for_each(FaultyNode::heal);
    let other = client(&nodes).await;
    let theirs = other.try_acquire("key").await.expect("it is free");
    let ours = poll!(waiting[0].as_mut());
    assert!(theirs.is_held());
    matches!(&ours, Poll::Ready(Ok(guard)) if guard.is_held())
}

// Shows: T1.11.
#[tokio::test(start_paused = true)]
async fn a_loss_that_the_driver_tells_a_holder_of_before_is_that_of_all_holders_since() {
    for hops in 0..=3 {
        assert!(!is_handed_out_after_a_loss(hops).await, "{hops} hops");
    }
}

#[tokio::test(start_paused = true)]
async fn closing_lets_go_of_a_lease_that_waits_for_its_next_holder() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    let mut waiting = Box::pin(redlock.acquire("key"));
    assert!(poll!(waiting.as_mut()).is_pending());
    drop(guard);
    redlock.close().await;
    assert_eq!(keys(&nodes), [0; 3]);
    let error = waiting.await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn after_the_close_a_lease_is_left_to_nobody() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    let mut waiting = Box::pin(redlock.acquire("key"));
    assert!(poll!(waiting.as_mut()).is_pending());
    redlock.close().await;
    // The caller that waits does not know yet that it waits in vain.
    guard.release().await.unwrap();
    assert_eq!(keys(&nodes), [0; 3]);
    drop(waiting);
}
