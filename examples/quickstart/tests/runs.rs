//! The quickstart as a newcomer runs it: as a process, judged by its last line and exit status.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use redlock_sandbox::{SERVER_VARIABLE, ServerBinary, ServerOptions, ServerSet};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The program without settings of the caller's.
fn quickstart() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quickstart"));
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("REDLOCK_") {
            command.env_remove(variable);
        }
    }
    command
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The numbers of the last line, after checking its words.
fn verdict(output: &Output) -> (usize, usize, usize) {
    let lines = lines(output);
    assert!(output.status.success(), "{lines:#?}");
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.starts_with("quickstart: "))
            .count(),
        1
    );
    let last = lines.last().expect("it says something");
    let rest = last
        .strip_prefix("quickstart: ok: 300 requests, 0 overlaps, 0 lost, ")
        .unwrap_or_else(|| panic!("{last}"));
    let numbers: Vec<usize> = rest
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [ticks, runs, killed] = numbers[..] else {
        panic!("{last}")
    };
    assert_eq!(
        rest,
        format!("{ticks} ticks, {runs} runs, {killed} node(s) killed")
    );
    assert_eq!(ticks, runs);
    assert!(ticks >= 4, "{last}");
    (ticks, runs, killed)
}

#[test]
fn on_servers_of_its_own_one_is_killed_and_nothing_is_lost() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let output = quickstart()
        .env(SERVER_VARIABLE, binary.path())
        .output()
        .expect("it starts");
    let (.., killed) = verdict(&output);
    assert_eq!(killed, 1);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test's patience")]
fn ctrl_c_leaves_no_folder_of_its_servers_even_of_the_one_that_was_killed() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let temporary = TempDir::new().expect("a folder");
    let mut process = quickstart()
        .env(SERVER_VARIABLE, binary.path())
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = BufReader::new(process.stdout.take().expect("it is piped"));
    let lines = output.lines().map(|line| line.expect("it is text"));
    let has_killed = lines.take(100).any(|line| line.contains("killed the node"));
    let folders = || temporary.path().read_dir().expect("it is there").count();
    let before = folders();
    // As the terminal does.
    let ended = kill_process(Pid::from_child(&process), Signal::INT);
    process.wait().expect("it ends");
    ended.expect("it ran");
    assert!(has_killed);
    assert_eq!(before, 5);
    let since = Instant::now();
    while folders() > 0 {
        let left = folders();
        assert!(since.elapsed() < Duration::from_secs(10), "{left} are left");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn without_any_server_it_runs_in_memory() {
    let output = quickstart()
        .env("PATH", "/nonexistent")
        .env_remove(SERVER_VARIABLE)
        .output()
        .expect("it starts");
    let (.., killed) = verdict(&output);
    assert_eq!(killed, 0);
    assert!(
        lines(&output)[0].contains("5 nodes in memory"),
        "{:?}",
        lines(&output)
    );
}

#[test]
fn on_servers_that_are_given_none_is_killed() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let servers = ServerSet::start(&binary, 3, &ServerOptions::default()).expect("they start");
    let output = quickstart()
        .env("REDLOCK_NODES", servers.urls().join(","))
        .output()
        .expect("it starts");
    let (.., killed) = verdict(&output);
    assert_eq!(killed, 0);
    assert!(servers.iter().all(redlock_sandbox::Server::is_running));
}

#[test]
fn a_first_quarantine_is_said_and_waited_through() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let servers = ServerSet::start(&binary, 3, &ServerOptions::default()).expect("they start");
    let output = quickstart()
        .env("REDLOCK_NODES", servers.urls().join(","))
        .env("REDLOCK_NAMESPACE", "demo")
        // Longer than the show itself may take.
        .env("REDLOCK_MAX_TTL", "20s")
        .output()
        .expect("it starts");
    verdict(&output);
    let text = lines(&output).join("\n");
    assert!(
        text.contains("waiting 2") && text.contains(" s until they vote"),
        "{text}"
    );
}

#[test]
fn nodes_that_do_not_listen_yet_are_waited_for_where_they_are_deployed() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let mut servers = ServerSet::start(&binary, 3, &ServerOptions::default()).expect("they start");
    for server in servers.iter_mut() {
        server.kill().expect("it runs");
    }
    let mut process = quickstart()
        .env("REDLOCK_NODES", servers.urls().join(","))
        .env("REDLOCK_NAMESPACE", "demo")
        .env("REDLOCK_MAX_TTL", "12s")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = BufReader::new(process.stdout.take().expect("it is piped"));
    let mut lines = output.lines().map(|line| line.expect("it is text"));
    let waits = lines.any(|line| line.contains("waiting until they listen"));
    if waits {
        for server in servers.iter_mut() {
            server.restart().expect("it starts again");
        }
    }
    let rest: Vec<String> = lines.collect();
    process.wait().expect("it ends");
    assert!(waits, "{rest:#?}");
    let last = rest.last().expect("it says something");
    assert!(
        last.starts_with("quickstart: ok: 300 requests"),
        "{rest:#?}"
    );
}

#[test]
fn without_the_lock_transfers_are_lost() {
    let output = quickstart()
        .arg("--without-lock")
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{:?}", lines(&output));
    let last = lines(&output).pop().expect("it says something");
    assert!(
        last.starts_with("quickstart: without the lock: 300 requests, "),
        "{last}"
    );
    assert!(!last.ends_with(", 0 lost"), "{last}");
}

#[test]
fn nodes_that_cannot_be_reached_end_it_with_a_line_each() {
    let nodes = "redis://:hunter2@127.0.0.1:1,redis://127.0.0.1:2";
    let output = quickstart()
        .env("REDLOCK_NODES", nodes)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let text = lines(&output).join("\n");
    assert!(
        text.contains("quickstart: failed: nodes: no quorum: 0 of 2 nodes"),
        "{text}"
    );
    assert!(
        text.contains("\n  127.0.0.1:1: ") && text.contains("\n  127.0.0.1:2: "),
        "{text}"
    );
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn an_unknown_argument_is_refused() {
    let output = quickstart().arg("--fast").output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: quickstart"));
}
