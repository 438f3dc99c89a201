//! `bench`: what a deployment bears.

use std::time::Duration;

use crate::kit::{Nodes, Relay, Running, eventually, run};

#[tokio::test]
async fn a_bench_tells_the_ttl_that_a_deployment_bears_and_leaves_nothing_behind() {
    let nodes = Nodes::blessed(3).await;
    let done = nodes.run(&["bench", "--for", "300ms", "--json"]).ended(0);
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let p99 = json["acquire_ms"]["p99"].as_f64().unwrap();
    let shortest = json["shortest_ttl_ms"].as_f64().unwrap();
    assert!(
        p99 > 0.0 && (shortest - (p99 * 10.0).max(100.0)).abs() < 1.0,
        "{json}"
    );
    assert!(json["contended_turns"].as_u64().unwrap() > 2, "{json}");
    assert!(!nodes.keys().iter().any(|key| key.contains("bench")));

    let slow: Vec<_> = (0..3)
        .map(|node| Relay::delaying(nodes[node].address(), Duration::from_millis(60)).url())
        .collect();
    let nodes = nodes.at(slow);
    let mut command = nodes.command(&["bench", "--for", "500ms", "--node-timeout", "200ms"]);
    let done = run(command.env("REDLOCK_TTL", "500ms").env("COLUMNS", "120"));
    assert!(
        done.out.contains("500 ms, is too short for these times"),
        "{done:?}"
    );
    assert_eq!(nodes.run(&["bench", "--for", "now"]).code, 2);
}

#[tokio::test]
async fn an_interrupted_bench_holds_nothing() {
    let nodes = Nodes::blessed(3).await;
    let held = || nodes.keys().iter().any(|key| key.contains("bench"));
    let bench = Running::start(&mut nodes.command(&["bench", "--for", "30s"]));
    eventually("it has locks", held);
    // The paused nodes release no lock, so a lock that is held now is held when the bench is interrupted.
    eventually("it has one for a while", || {
        for node in 0..3 {
            nodes.ask(node, &["CLIENT", "PAUSE", "80", "WRITE"]);
        }
        let is_held = held();
        if !is_held {
            (0..3).for_each(|node| drop(nodes.ask(node, &["CLIENT", "UNPAUSE"])));
        }
        is_held
    });
    assert_eq!(bench.interrupt(), Some(130));
    std::thread::sleep(Duration::from_millis(200));
    assert!(!held(), "{:?}", nodes.keys());
}
