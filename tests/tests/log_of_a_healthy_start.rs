//! A client whose nodes are all well has nothing to warn of.

use std::time::Duration;

use redlock_tests::{Logs, Nodes, builder, client, voting};

const TTL: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_start_warns_of_nothing() {
    let nodes = Nodes::start(5);
    // Another client has used them before.
    client(nodes.urls(), TTL).await.close().await;
    let logs = Logs::capture();
    for _ in 0..10 {
        let redlock = builder(nodes.urls(), TTL).build().await.unwrap();
        voting(&redlock, 5, SOON).await;
        let guard = redlock.acquire("a").await.unwrap();
        guard.release().await.unwrap();
        redlock.close().await;
    }
    let warnings = logs.text();
    let warnings: Vec<&str> = warnings.lines().filter(|l| l.contains("WARN")).collect();
    assert!(warnings.is_empty(), "{warnings:#?}");
}
