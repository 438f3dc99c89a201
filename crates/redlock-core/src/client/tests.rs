use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::Redlock;
use crate::MemoryNode;

const MS: Duration = Duration::from_millis(1);

/// Returns how many numbers a client uses once its driver has done what there was to do.
async fn in_use(redlock: &Redlock) -> usize {
    sleep(50 * MS).await;
    redlock.client.engine.numbers_in_use()
}

#[tokio::test(start_paused = true)]
async fn a_lease_keeps_its_number_and_nothing_else_keeps_one() {
    let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    let client = || {
        Redlock::builder()
            .nodes(nodes.clone())
            .virtual_time()
            .build()
    };
    let (redlock, other) = (client().await.unwrap(), client().await.unwrap());
    let taken = other.acquire("taken").await.unwrap();

    let mut guard = redlock.acquire("key").await.unwrap();
    assert_eq!(in_use(&redlock).await, 1);
    redlock.try_acquire("taken").await.unwrap_err();
    assert_eq!(in_use(&redlock).await, 1, "of an acquire that failed");
    timeout(10 * MS, redlock.acquire("taken"))
        .await
        .unwrap_err();
    assert_eq!(in_use(&redlock).await, 1, "of one that was dropped");

    guard.downgrade().await.unwrap();
    assert_eq!(in_use(&redlock).await, 1);
    guard.try_upgrade().await.unwrap();
    assert_eq!(in_use(&redlock).await, 1, "of the lease before an upgrade");
    let release = async {
        sleep(MS).await;
        drop(guard);
    };
    let (next, ()) = tokio::join!(redlock.acquire("key"), release);
    let next = next.unwrap();
    assert_eq!(in_use(&redlock).await, 1, "of a lease that changed hands");
    next.leave();
    assert_eq!(in_use(&redlock).await, 0);

    taken.release().await.unwrap();
    assert_eq!(in_use(&other).await, 0);
}
