//! Nodes that do not answer the doctor as others do.

use redlock_sandbox::{Persistence, ServerOptions};
use serde_json::{Value, json};

use crate::kit::{ConfigFile, Nodes, Relay};

/// Reaches the second of three nodes through this.
fn through(relay: &Relay, nodes: Nodes) -> Nodes {
    let mut urls = nodes.urls();
    urls[1] = relay.url();
    nodes.at(urls)
}

#[tokio::test]
async fn a_node_that_did_not_answer_at_first_is_examined_once_it_answers() {
    // Opening a connection, and an examination that has begun.
    for words in ["SETINFO", "SLOWLOG"] {
        let nodes = Nodes::blessed(3).await;
        nodes.set(1, "min-replicas-to-write", "1");
        nodes.set(1, "maxmemory", "200mb");
        let relay = Relay::hanging_up_on(nodes[1].address(), words, 1);
        let nodes = through(&relay, nodes);
        let examined = nodes.doctor(&[]);
        let second = &examined.json["nodes"][1];
        assert_ne!(second["version"], Value::Null, "{words}: {examined:?}");
        examined.one("configuration", "differ in maxmemory");
        examined.one("writes", "NOREPLICAS");
        assert!(examined.found("reachable").is_empty(), "{examined:?}");
    }
}

#[tokio::test]
async fn a_node_that_votes_and_cannot_be_examined_is_told_of() {
    let nodes = Nodes::blessed(3).await;
    let address = nodes[1].address();
    // Only the doctor says this.
    let relay = Relay::hanging_up_on(address, "SLOWLOG", usize::MAX);
    let nodes = through(&relay, nodes);
    let examined = nodes.doctor(&["--strict"]);
    assert_eq!(examined.json["votes"], 3, "{examined:?}");
    let node = relay.url().replace("redis://", "");
    examined.one(
        "reachable",
        &format!("warning … {node} … could not be examined … again"),
    );
    assert_eq!(examined.json["status"], "warnings");
    assert_eq!(examined.code, 1, "{examined:?}");
    let deep = nodes.doctor(&["--strict", "--deep"]);
    deep.one("reachable", &format!("warning … {node}"));
    assert_eq!(deep.code, 1, "{deep:?}");
}

#[tokio::test]
async fn another_version_of_the_protocol_hides_nothing() {
    let file = ConfigFile::of("[expert]\ndangerous_trust_persistence = true\n");
    let options = ServerOptions::default().persistence(Persistence::AppendOnly);
    let nodes = Nodes::start_with(3, &options);
    let busy = "local n = 0 while n < 60000000 do n = n + 1 end return n";
    nodes.ask(1, &["EVAL", busy, "0"]);
    let urls = nodes.urls();
    let in_resp3 = urls.iter().map(|url| format!("{url}?protocol=resp3"));
    let nodes = nodes.at(in_resp3.collect());
    let arguments = ["--deep", "--node-timeout", "100ms", "--config"];
    let examined = nodes.doctor(&[&arguments[..], &[file.path()]].concat());
    for node in examined.json["nodes"].as_array().unwrap() {
        assert_eq!(node["unverified"], json!([]), "{examined:?}");
        assert_ne!(node["version"], "version unknown", "{examined:?}");
        assert_ne!(node["clock_ahead_ms"], Value::Null, "{examined:?}");
    }
    assert!(examined.found("persistence").is_empty(), "{examined:?}");
    assert!(examined.found("deep").is_empty(), "{examined:?}");
    let slow = nodes[1].address().to_string();
    examined.one("slow-commands", &format!("warning … {slow}"));
}
