//! Nodes that answer, more slowly than they are asked.

use futures_util::future::join_all;
use redlock_core::{AcquireOptions, Wait};
use tokio::time::timeout;

use crate::paused_time::fixtures::{Faults, MS, SECOND, client, faulty};

fn slow(ms: u32) -> Faults {
    Faults::late_replies(ms * MS)
}

#[tokio::test(start_paused = true)]
async fn a_held_lease_survives_a_burst_of_others() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("held").await.unwrap();
    nodes.iter().for_each(|node| node.set(slow(200)));
    let burst = join_all((0..6_000).map(|caller| {
        let redlock = redlock.clone();
        async move { redlock.acquire(format!("key {caller}")).await.map(drop) }
    }));
    let (_, lost) = tokio::join!(burst, timeout(30 * SECOND, guard.lease().lost()));
    assert!(lost.is_err(), "{lost:?}");
}

#[tokio::test(start_paused = true)]
async fn an_overload_ends_with_the_load() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    nodes.iter().for_each(|node| node.set(slow(400)));
    let callers = (0..6_000).map(|caller| {
        let redlock = redlock.clone();
        async move { redlock.acquire(format!("key {caller}")).await.map(drop) }
    });
    let won = join_all(callers)
        .await
        .iter()
        .filter(|won| won.is_ok())
        .count();
    assert!(won >= 500, "{won} won");
    tokio::time::sleep(SECOND).await;
    redlock
        .try_acquire("alone")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

/// Each node answers in time, and a client has more to ask than can be in flight at once.
// Shows: T6.10.
#[tokio::test(start_paused = true)]
async fn ten_thousand_acquires_at_once_all_win() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    nodes.iter().for_each(|node| node.set(slow(400)));
    let wait = AcquireOptions::new().wait(Wait::UpTo(60 * SECOND));
    let callers = (0..10_000).map(|caller| {
        let (redlock, wait) = (redlock.clone(), wait.clone());
        async move { redlock.acquire_with(format!("key {caller}"), wait).await }
    });
    let failed = join_all(callers).await.into_iter().find_map(Result::err);
    assert!(failed.is_none(), "{failed:?}");
}
