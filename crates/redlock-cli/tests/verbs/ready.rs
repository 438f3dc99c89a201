//! `ready`: the question of a health check.

use std::process::Command;

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
    let done = nodes.run(&["ready", "2"]).ended(1);
    assert!(
        done.out.contains("votes in") && done.out.contains(&address),
        "{done:?}"
    );
    let json = nodes.run(&["ready", "2", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["ready_in_ms"].as_f64().unwrap() > 0.0, "{json}");
    nodes
        .run(&[
            "ready",
            &address.replace("127.0.0.1", "localhost"),
            "--wait",
            "20s",
        ])
        .ended(0);
    nodes.run(&["ready", &address, "--wait", "0s"]).ended(0);
    nodes.run(&["ready", &nodes[1].url()]).ended(0);
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

/// What `docker/votes.sh` says of a node to which it has such options, and whether that is yes.
fn votes(nodes: &Nodes, node: usize, options: &[&str], password: &str) -> (bool, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docker/votes.sh");
    let port = nodes[node].port().to_string();
    let mut command = Command::new("sh");
    command
        .args([script, "redlock", "-p", &port])
        .args(options)
        .env("REDISCLI_AUTH", password);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (output.status.success(), said)
}

#[tokio::test]
async fn the_rights_of_a_client_are_enough_for_the_script_that_asks_for_a_vote() {
    let nodes = Nodes::blessed(3).await;
    nodes.with_least_rights(0);
    let (yes, said) = votes(&nodes, 0, &["--user", "lock"], "pw");
    assert!(yes, "{said}");
    // `redis-cli` warns of a password that all can see.
    let (yes, said) = votes(&nodes, 0, &["--user", "lock", "--pass", "pw"], "");
    assert!(yes, "{said}");
    nodes.with_user(1, "~{redlock}:* +info");
    let (yes, said) = votes(&nodes, 1, &["--user", "lock"], "pw");
    assert!(!yes && said.contains("NOPERM"), "{said}");
    nodes.ask(2, &["CONFIG", "SET", "requirepass", "pw"]);
    let (yes, said) = votes(&nodes, 2, &[], "");
    assert!(!yes && said.contains("NOAUTH"), "{said}");
}

#[test]
fn a_host_whose_name_begins_like_another_is_found_by_its_own() {
    let mut command = redlock(&["ready", "localhost.invalid", "--wait", "0s"]);
    let urls = "redis://localhost.invalid:79,redis://10.0.0.1,redis://10.0.0.2";
    let done = run(command.args(["--nodes", urls, "--connect-timeout", "100ms"]));
    done.told(1, "localhost.invalid:79");
}
