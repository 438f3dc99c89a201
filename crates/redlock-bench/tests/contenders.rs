//! Every contender, as a process, on real servers.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
};

use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use serde_json::{Value, json};

fn servers() -> ServerSet {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    ServerSet::start(&binary, 5, &ServerOptions::default()).unwrap()
}

/// A contender, which ends with this value.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(client: &str, servers: &ServerSet) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_redlock-bench"))
            .args(["contender", client])
            .args(servers.urls())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        Self {
            child,
            input,
            lines,
        }
    }

    fn begin(&mut self, workload: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{workload}").unwrap();
    }

    fn outcome(&mut self, workload: &Value) -> Value {
        self.begin(workload);
        let line = self.lines.next().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Ends its input, and waits for its own end.
    fn end(&mut self) -> ExitStatus {
        self.input = None;
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn milliseconds(length: u32) -> Value {
    json!({ "secs": 0, "nanos": length * 1_000_000 })
}

#[test]
fn every_contender_makes_pairs_and_none_fails() {
    let servers = servers();
    for client in ["raw", "redis-rs", "rslock", "redlock", "ours"] {
        let pairs = json!({ "kind": "pairs", "tasks": 1, "length": milliseconds(100) });
        let mut contender = Process::start(client, &servers);
        for _ in 0..2 {
            let outcome = contender.outcome(&pairs);
            assert!(outcome["done"].as_u64() > Some(0), "{client}: {outcome}");
            assert_eq!(outcome["failed"], 0, "{client}: {outcome}");
        }
    }
}

#[test]
fn every_pair_sets_and_deletes_a_key_of_its_own_on_every_node() {
    let servers = servers();
    let pairs = json!({ "kind": "pairs", "tasks": 8, "length": milliseconds(100) });
    let outcome = Process::start("raw", &servers).outcome(&pairs);
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
    let mut raw = Process::start("raw", &servers);
    let day = json!({ "kind": "pairs", "tasks": 1, "length": { "secs": 86_400, "nanos": 0 } });
    raw.begin(&day);
    assert!(raw.end().success());
}

#[test]
fn a_hot_key_has_one_holder_and_every_turn_is_of_a_waiter() {
    let servers = servers();
    for client in ["rslock", "mutex", "ours"] {
        let hot = json!({
            "kind": "hot_key", "key": client, "waiters": 4, "hold": milliseconds(1),
            "length": milliseconds(300),
        });
        let outcome = Process::start(client, &servers).outcome(&hot);
        assert_eq!(outcome["overlaps"], 0, "{outcome}");
        let shares: Vec<_> = outcome["shares"].as_array().unwrap().iter().collect();
        assert_eq!(shares.len(), 4, "{outcome}");
        let turns: u64 = shares.iter().filter_map(|share| share.as_u64()).sum();
        assert!(turns > 1 && outcome["done"] == turns, "{outcome}");
        let hold = &outcome["hold"]["nanos"];
        assert!(hold.as_u64() >= Some(1_000_000), "{outcome}");
    }
}

#[test]
fn keys_are_used_as_often_as_was_asked_for() {
    let servers = servers();
    let keys = json!({ "kind": "keys", "tasks": 8, "count": 100 });
    let outcome = Process::start("ours", &servers).outcome(&keys);
    assert_eq!(
        (&outcome["done"], &outcome["failed"]),
        (&json!(100), &json!(0))
    );
}

#[test]
fn callers_of_another_process_wait_for_what_is_held() {
    let servers = servers();
    let [mut holder, mut other] = [(); 2].map(|()| Process::start("ours", &servers));
    let hold = json!({
        "kind": "hold", "key": "a", "tasks": 1, "count": 5, "ttl": { "secs": 30, "nanos": 0 },
    });
    assert_eq!(holder.outcome(&hold)["done"], 5);
    let mut ended = |count: u32| {
        let wait = json!({
            "kind": "wait", "key": "a", "count": count, "length": milliseconds(400),
        });
        other.outcome(&wait)["failed"].clone()
    };
    assert_eq!(ended(5), 0);
    assert_eq!(ended(7), 2, "two of them are free");
}

#[test]
fn leases_that_are_lost_are_not_counted_as_held() {
    let mut servers = servers();
    let mut ours = Process::start("ours", &servers);
    let mut counts = |workload: &Value| {
        let outcome = ours.outcome(workload);
        (outcome["done"].clone(), outcome["failed"].clone())
    };
    let hold = json!({ "kind": "hold", "key": "a", "tasks": 4, "count": 20, "ttl": { "secs": 2, "nanos": 0 } });
    assert_eq!(counts(&hold), (json!(20), json!(0)));
    // More than their time to live, so all of them were renewed.
    let rest = json!({ "kind": "rest", "length": { "secs": 2, "nanos": 500_000_000 } });
    assert_eq!(counts(&rest), (json!(20), json!(0)));
    for index in 0..3 {
        servers[index].kill().unwrap();
    }
    assert_eq!(counts(&rest), (json!(0), json!(20)));
}
