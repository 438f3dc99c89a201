//! Nodes that are down, hung or slow, in paused time.

use crate::paused_time::fixtures::{Faults, MS, SECOND, client, client_of, faulty, keys, settle};

use redlock_core::{AcquireErrorKind, AcquireOptions, BuildErrorKind, NodeAnswer, Wait};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn no_majority_is_told_with_a_line_per_node() {
    let nodes = faulty(5);
    let redlock = client(&nodes).await;
    for node in &nodes[..2] {
        node.node.stop();
    }
    nodes[2].set(Faults::SILENT);
    let start = Instant::now();
    let error = redlock.try_acquire("key").await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::NoQuorum);
    // A tenth of the ttl, at most half a second, is a node's time limit.
    assert_eq!(start.elapsed(), 500 * MS);
    let answers: Vec<_> = error
        .reports()
        .iter()
        .map(|report| &report.answer)
        .collect();
    assert!(matches!(answers[0], NodeAnswer::Unknown { .. }), "{error}");
    assert!(matches!(answers[2], NodeAnswer::Pending), "{error}");
    assert_eq!(answers[3..], [&NodeAnswer::Granted; 2]);
    let text = error.to_string();
    assert!(
        text.starts_with("no quorum: 2 of 5 nodes granted, 3 needed\n"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 6);
    settle().await;
    assert_eq!(keys(&nodes)[3..], [0; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_outlasts_an_outage() {
    let nodes = faulty(3);
    let redlock = client_of(&nodes).quorum_wait(5 * SECOND);
    let redlock = redlock.build().await.unwrap();
    nodes.iter().for_each(|node| node.node.stop());
    let start = Instant::now();
    let (acquired, ()) = tokio::join!(redlock.acquire("key"), async {
        tokio::time::sleep(SECOND).await;
        nodes.iter().for_each(|node| node.node.start());
    });
    drop(acquired.unwrap());
    // Connections are tried again within a second, and attempts within a quarter of one.
    assert!(
        start.elapsed() <= SECOND + 1300 * MS,
        "after {:?}",
        start.elapsed()
    );

    nodes.iter().for_each(|node| node.node.stop());
    let start = Instant::now();
    let wait = AcquireOptions::new().wait(Wait::UpTo(3 * SECOND));
    let error = redlock.acquire_with("other", wait).await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::NoQuorum);
    assert!(start.elapsed() >= 3 * SECOND && start.elapsed() <= 3 * SECOND + 501 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_client_without_a_majority_is_not_built() {
    let nodes = faulty(3);
    nodes[0].node.stop();
    let minority_down = client_of(&nodes).build().await;
    assert!(minority_down.is_ok());
    nodes[1].set(Faults::BLACK_HOLE);
    let start = Instant::now();
    let error = client_of(&nodes).build().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.field()),
        (BuildErrorKind::NoQuorum, "nodes")
    );
    assert!(
        start.elapsed() <= SECOND + 200 * MS,
        "after {:?}",
        start.elapsed()
    );
    assert_eq!(error.reports().len(), 3);
    assert!(
        error.to_string().contains("no connection within 1s"),
        "{error}"
    );

    let lazy = client_of(&nodes).connect_lazily().build().await.unwrap();
    assert_eq!(
        lazy.try_acquire("key").await.unwrap_err().kind(),
        AcquireErrorKind::NoQuorum
    );
}

#[tokio::test(start_paused = true)]
async fn every_node_that_is_down_is_told_with_its_reason() {
    let nodes = faulty(5);
    let redlock = client(&nodes).await;
    nodes.iter().for_each(|node| node.node.stop());
    tokio::time::sleep(3 * SECOND).await;
    let error = redlock.try_acquire("key").await.unwrap_err();
    let lines = error.to_string();
    assert_eq!(lines.matches("the node is stopped").count(), 5, "{lines}");
}
