//! A node that Sentinels name has a line with the server that it is, at first and after each failover.

use std::time::Duration;

use redlock_tests::{Logs, WatchedNodes, builder, eventually};

const TTL: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_of_the_moment_is_in_the_line_of_a_node_that_comes_up() {
    let nodes = WatchedNodes::start(1);
    let logs = Logs::capture();
    let redlock = builder(nodes.urls(), TTL).build().await.unwrap();
    let (first, second) = (nodes.masters[0].address(), nodes.replicas[0].address());
    let name = format!("lock-0@{}", nodes.sentinels[0].address());
    let line = async |words: [&str; 2], server: &str| {
        let find = || {
            let text = logs.text();
            let words = ["INFO redlock::node", &name, words[0], words[1], server];
            let mut lines = text.lines();
            lines.any(|line| words.iter().all(|word| line.contains(word)))
        };
        eventually("its line", SOON, find, |is_there| *is_there).await;
    };
    line(["node is up", "server="], &first.to_string()).await;
    nodes.promote_another(0, first.port()).await;
    line(["node is ", "server="], &second.to_string()).await;
    redlock.close().await;
}
