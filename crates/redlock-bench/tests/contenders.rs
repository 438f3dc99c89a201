//! Every contender, as a process, on real servers.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
};

use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use serde_json::{Value, json};

fn servers() -> ServerSet {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    ServerSet::start(&binary, 5, &ServerOptions::default()).unwrap()
}

fn contender(client: &str, servers: &ServerSet) -> Child {
    Command::new(env!("CARGO_BIN_EXE_redlock-bench"))
        .args(["contender", client])
        .args(servers.urls())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Has a contender do these workloads, and returns what it says of them, after which it ends with its input.
fn outcomes(client: &str, servers: &ServerSet, workloads: &[Value]) -> Vec<Value> {
    let mut child = contender(client, servers);
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let mut outcomes = Vec::new();
    for workload in workloads {
        writeln!(input, "{workload}").unwrap();
        let line = lines.next().unwrap().unwrap();
        outcomes.push(serde_json::from_str(&line).unwrap());
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    outcomes
}

fn milliseconds(length: u32) -> Value {
    json!({ "secs": 0, "nanos": length * 1_000_000 })
}

#[test]
fn every_contender_makes_pairs_and_none_fails() {
    let servers = servers();
    for client in ["raw", "redis-rs", "rslock", "redlock", "ours"] {
        let pairs = json!({ "kind": "pairs", "tasks": 1, "length": milliseconds(100) });
        for outcome in outcomes(client, &servers, &[pairs.clone(), pairs]) {
            assert!(outcome["done"].as_u64() > Some(0), "{client}: {outcome}");
            assert_eq!(outcome["failed"], 0, "{client}: {outcome}");
        }
    }
}

#[test]
fn every_pair_sets_and_deletes_a_key_of_its_own_on_every_node() {
    let servers = servers();
    let pairs = json!({ "kind": "pairs", "tasks": 8, "length": milliseconds(100) });
    let outcome = outcomes("raw", &servers, &[pairs]).remove(0);
    let done = outcome["done"].as_u64().unwrap();
    for server in &servers {
        let stats = server.command(&["INFO", "commandstats"]).unwrap();
        let stats = stats.as_text().unwrap();
        let calls = |name: &str| {
            let line = stats.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix("calls=")?.split(',').next()?.parse().ok()
        };
        assert!(calls("cmdstat_set:") >= Some(done), "{done}: {stats}");
        assert!(calls("cmdstat_del:") >= Some(done), "{done}: {stats}");
        let left = server.command(&["DBSIZE"]).unwrap();
        assert_eq!(left.as_integer(), Some(0));
    }
}

#[test]
fn a_contender_ends_with_its_input_in_the_middle_of_a_workload() {
    let servers = servers();
    let mut child = contender("raw", &servers);
    let mut input = child.stdin.take().unwrap();
    let day = json!({ "kind": "pairs", "tasks": 1, "length": { "secs": 86_400, "nanos": 0 } });
    writeln!(input, "{day}").unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
}
