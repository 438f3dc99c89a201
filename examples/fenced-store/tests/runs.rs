//! The example as a newcomer runs it: as a process, judged by its last line and exit status.

use std::{
    process::{Command, Output},
    thread,
    time::Duration,
};

use redlock_sandbox::{SERVER_VARIABLE, ServerBinary, ServerOptions, ServerSet};

/// The program without settings of the caller's.
fn fenced_store() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fenced-store"));
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("REDLOCK_") {
            command.env_remove(variable);
        }
    }
    command
}

fn on_own_servers() -> Command {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let mut command = fenced_store();
    command.env(SERVER_VARIABLE, binary.path());
    command
}

/// What it tells, after checking its last line.
fn story(output: &Output, last: &str) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert_eq!(text.lines().last(), Some(last), "{text}");
    assert_eq!(text.matches("fenced-store: ").count(), 1, "{text}");
    text
}

const OK: &str =
    "fenced-store: ok: 1 late write refused, 2 of 2 changes made, 0 lost, the balance is 120";

#[test]
fn the_late_write_of_a_process_that_was_stopped_is_refused() {
    let output = on_own_servers().output().expect("it starts");
    let story = story(&output, OK);
    let lines = [
        "A is stopped (SIGSTOP)",
        "B wrote 150",
        "A goes on (SIGCONT)",
        "A was refused: its token",
        "A wrote 120",
    ];
    let told: Vec<_> = lines.iter().map(|line| story.find(line)).collect();
    assert!(told.is_sorted() && told[0].is_some(), "{story}");
}

#[test]
fn without_the_fence_the_late_write_is_accepted_and_another_is_lost() {
    let output = on_own_servers().arg("--without-fence").output();
    let story = story(
        &output.expect("it starts"),
        "fenced-store: without the fence: the late write was accepted, the deposit of 50 is lost, \
         the balance is 70",
    );
    assert!(!story.contains("refused"), "{story}");
}

#[test]
fn servers_that_are_given_are_used_and_keep_nothing_of_it() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let servers = ServerSet::start(&binary, 3, &ServerOptions::default()).expect("they start");
    let output = fenced_store()
        .env("REDLOCK_NODES", servers.urls().join(","))
        .output();
    story(&output.expect("it starts"), OK);
    let kept = |server: &redlock_sandbox::Server| {
        let keys = server.command(&["KEYS", "*"]).expect("it answers");
        let keys = keys.as_array().expect("a list").iter();
        let others = |key: &&redlock_sandbox::Value| {
            let key = key.as_text().unwrap_or_default();
            !matches!(key, "{fenced-store}:mark" | "{fenced-store}:counters")
        };
        keys.filter(others).count()
    };
    // A node keeps the sign of life of a client that waited for three seconds.
    let is_empty = || servers.iter().all(|server| kept(server) == 0);
    let is_soon = (0..60).any(|_| {
        thread::sleep(Duration::from_millis(100));
        is_empty()
    });
    assert!(is_soon);
}

#[test]
fn without_any_server_it_says_what_to_install() {
    let output = fenced_store()
        .env("PATH", "/nonexistent")
        .env_remove(SERVER_VARIABLE)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("fenced-store: failed: ") && last.contains("install redis-server"),
        "{text}"
    );
}

#[test]
fn an_unknown_argument_is_a_mistake_of_usage() {
    let output = fenced_store().arg("--help-me").output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
}
