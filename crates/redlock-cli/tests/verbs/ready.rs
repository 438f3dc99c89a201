//! `ready`: the question of a health check.

use crate::kit::{Nodes, redlock, run};

#[tokio::test]
async fn a_node_is_ready_when_it_votes_and_not_before() {
    let mut nodes = Nodes::blessed(3).await;
    let address = nodes[1].address().to_string();
    let done = nodes.run(&["ready", &address]);
    assert_eq!(
        (done.code, done.out.trim()),
        (0, &*format!("{address} votes")),
        "{done:?}"
    );
    nodes[1].restart().unwrap();
    let done = nodes.run(&["ready", "2"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.out.contains("votes in") && done.out.contains(&address),
        "{done:?}"
    );
    let json = nodes.run(&["ready", "2", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["ready_in_ms"].as_f64().unwrap() > 0.0, "{json}");
    let done = nodes.run(&[
        "ready",
        &address.replace("127.0.0.1", "localhost"),
        "--wait",
        "20s",
    ]);
    assert_eq!(done.code, 0, "{done:?}");
    let done = nodes.run(&["ready", &address, "--wait", "0s"]);
    assert_eq!(done.code, 0, "{done:?}");
    let done = nodes.run(&["ready", &nodes[1].url()]);
    assert_eq!(done.code, 0, "{done:?}");
    nodes[1].kill().unwrap();
    let done = nodes.run(&["ready", &address]);
    assert_eq!(done.code, 1);
    let said = format!("{address}: cannot be reached: ");
    assert!(done.out.starts_with(&said), "{done:?}");
    assert!(done.out.contains("refused"), "{done:?}");
    let json = nodes.run(&["ready", &address, "--json"]).out;
    assert!(json.contains("\"why\":\"cannot be reached: "), "{json}");
    for unknown in ["10.0.0.1:6379", "0", "4", "127.0.0.1", "localhost.internal"] {
        assert_eq!(nodes.run(&["ready", unknown]).code, 2, "{unknown}");
    }
}

#[test]
fn a_host_whose_name_begins_like_another_is_found_by_its_own() {
    let mut command = redlock(&["ready", "localhost.invalid", "--wait", "0s"]);
    let urls = "redis://localhost.invalid:79,redis://10.0.0.1,redis://10.0.0.2";
    let done = run(command.args(["--nodes", urls, "--connect-timeout", "100ms"]));
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.out.contains("localhost.invalid:79"), "{done:?}");
}
