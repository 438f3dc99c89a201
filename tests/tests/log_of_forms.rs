//! The log says at `DEBUG` by which form a node is called, and why it is not called by functions.

use std::time::Duration;

use redlock_core::{NodeConfig, RedlockBuilder, node::RedisNode};
use redlock_tests::{Logs, Nodes, builder, eventually, voting};

const TTL: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_form_of_calls_has_a_line_with_its_cause() {
    let nodes = Nodes::start(3);
    let redlock = delayed(nodes.urls()).build().await.unwrap();
    voting(&redlock, 3, TTL).await;
    redlock.close().await;
    // The last one votes, has no functions, and no memory for them.
    nodes.ask(2, &["FUNCTION", "FLUSH"]);
    nodes.ask(2, &["SET", "ballast", &"x".repeat(1 << 20)]);
    nodes.ask(2, &["CONFIG", "SET", "maxmemory", "1mb"]);
    let mut user = vec!["ACL", "SETUSER", "lock", "on", ">sesame", "~*", "-@all"];
    user.extend(RedisNode::RIGHTS.split(' '));
    nodes.ask(1, &user);
    let addresses = [0, 1, 2].map(|node: usize| nodes[node].address().to_string());
    let urls = [
        nodes[0].url(),
        format!("redis://lock:sesame@{}", addresses[1]),
        nodes[2].url(),
    ];
    let logs = Logs::capture();
    let redlock = delayed(urls).build().await;
    let redlock = redlock.expect("all can be reached");
    // It is asked each time that it is looked at.
    let refused = || {
        let info = nodes.ask(2, &["INFO", "commandstats"]);
        let line = info
            .lines()
            .find(|line| line.starts_with("cmdstat_function|load:"));
        let (_, rest) = line?.split_once("rejected_calls=")?;
        rest.split(',').next()?.parse::<u32>().ok()
    };
    let again = |refused: &Option<u32>| refused.is_some_and(|refused| refused >= 3);
    eventually("it is tried again", TTL * 3, refused, again).await;
    redlock.close().await;

    let text = logs.text();
    let said = |node: &str, words: &[&str]| {
        let mut lines = text.lines().filter(|line| line.contains(node));
        lines.any(|line| words.iter().all(|word| line.contains(word)))
    };
    let functions = ["DEBUG", "redlock::node: node is called by functions"];
    let script = [
        "DEBUG",
        "redlock::node: node is called by its script",
        "NOPERM",
    ];
    assert!(said(&addresses[0], &functions), "{text}");
    assert!(said(&addresses[1], &script), "{text}");
    assert!(!said(&addresses[1], &functions), "{text}");
    let full = text.lines().filter(|line| {
        let about = [&*addresses[2], "is called by its script", "OOM"];
        about.iter().all(|word| line.contains(word))
    });
    assert_eq!(full.count(), 1, "{text}");
    assert!(!text.contains("sesame"), "{text}");
}

/// Functions are for clients that trust delayed restarts.
fn delayed<N: Into<NodeConfig>>(nodes: impl IntoIterator<Item = N>) -> RedlockBuilder {
    builder(nodes, TTL).expert(|expert| expert.dangerous_trust_delayed_restarts = true)
}
