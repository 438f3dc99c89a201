//! The log says at `DEBUG` by which form a node is called, and why it is not called by functions.

use std::time::Duration;

use redlock_core::node::RedisNode;
use redlock_tests::{Logs, Nodes, builder};

const TTL: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_form_of_calls_has_a_line_with_its_cause() {
    let logs = Logs::capture();
    let nodes = Nodes::start(2);
    let mut user = vec!["ACL", "SETUSER", "lock", "on", ">sesame", "~*", "-@all"];
    user.extend(RedisNode::RIGHTS.split(' '));
    nodes.ask(1, &user);
    let addresses = [nodes[0].address(), nodes[1].address()].map(|address| address.to_string());
    let urls = [
        nodes[0].url(),
        format!("redis://lock:sesame@{}", addresses[1]),
    ];
    let redlock = builder(urls, TTL).build().await;
    redlock.expect("both can be reached").close().await;

    let text = logs.text();
    let said = |node: &str, words: &[&str]| {
        let mut lines = text.lines().filter(|line| line.contains(node));
        lines.any(|line| words.iter().all(|word| line.contains(word)))
    };
    let functions = ["DEBUG redlock::node", "is called by functions"];
    let script = ["DEBUG redlock::node", "is called by its script", "NOPERM"];
    assert!(said(&addresses[0], &functions), "{text}");
    assert!(said(&addresses[1], &script), "{text}");
    assert!(!said(&addresses[1], &functions), "{text}");
    assert!(!text.contains("sesame"), "{text}");
}
