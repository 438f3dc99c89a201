//! What odd nodes must not do to a client.

use redlock_core::NodeAnswer;
use tokio::time::Instant;

use crate::paused_time::{
    fixtures::{MS, SECOND, settle, soon},
    odd_node::{client, keys, odd},
};

#[tokio::test(start_paused = true)]
async fn closing_waits_for_releases_whose_connection_broke() {
    let nodes = odd(3, 2 * MS);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    nodes.iter().for_each(|node| node.cut.set(true));
    redlock.try_acquire("other").await.unwrap_err();
    nodes.iter().for_each(|node| node.cut.set(false));
    drop(guard);
    redlock.close().await;
    assert_eq!(keys(&nodes), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_run_is_not_told_as_not_executed() {
    let nodes = odd(3, 2 * MS);
    let redlock = client(&nodes).await;
    nodes.iter().for_each(|node| node.cut.set(true));
    let error = redlock.try_acquire("key").await.unwrap_err();
    assert_eq!(keys(&nodes), [1; 3], "all of them ran it");
    for report in error.reports() {
        // The third may not have failed yet when two decide.
        let known = matches!(
            report.answer,
            NodeAnswer::Unknown { .. } | NodeAnswer::Pending
        );
        assert!(known, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_code_panicked_costs_one_vote_and_no_time() {
    let nodes = odd(3, MS);
    let redlock = client(&nodes).await;
    nodes[0].panic.set(true);
    redlock
        .acquire("key")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    tokio::time::sleep(SECOND).await;
    let start = Instant::now();
    soon(redlock.acquire("key"))
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    soon(redlock.close()).await;
    assert!(start.elapsed() < MS, "{:?} went by", start.elapsed());
    settle().await;
    assert_eq!(keys(&nodes)[1..], [0; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_code_panicked_is_connected_again() {
    let nodes = odd(3, MS);
    let redlock = client(&nodes).await;
    nodes[0].panic.set(true);
    let guard = redlock.acquire("key").await.unwrap();
    guard.release().await.unwrap();
    nodes[0].panic.set(false);
    tokio::time::sleep(3 * SECOND).await;
    let guard = redlock.acquire("key").await.unwrap();
    // Also the node that the acquire did not ask first.
    tokio::time::sleep(200 * MS).await;
    assert_eq!(keys(&nodes), [1; 3]);
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_without_work_wakes_up_for_its_heartbeats_only() {
    let nodes = odd(3, MS);
    let redlock = client(&nodes).await;
    let wake_ups = async || {
        let parks = || {
            tokio::runtime::Handle::current()
                .metrics()
                .worker_park_count(0)
        };
        let before = parks();
        tokio::time::sleep(60 * SECOND).await;
        parks() - before
    };
    let idle = wake_ups().await;
    let guard = redlock.acquire("key").await.unwrap();
    let busy = wake_ups().await;
    guard.release().await.unwrap();
    // Each of three nodes is asked and answers once a second.
    assert!(idle <= 4 * 60, "{idle}");
    assert!(busy >= 4 * 60, "{busy}");
    assert!(wake_ups().await <= idle + 10);
}
