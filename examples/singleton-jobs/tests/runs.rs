//! The example as a newcomer runs it: as processes, judged by their last line and exit status.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Output, Stdio},
    time::Duration,
};

use redlock_sandbox::{Process, SERVER_VARIABLE, Server, ServerBinary, ServerOptions, ServerSet};

/// Takes the caller's settings away.
fn clean(mut command: Command) -> Command {
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("REDLOCK_") {
            command.env_remove(variable);
        }
    }
    command
}

fn singleton_jobs() -> Command {
    clean(Command::new(env!("CARGO_BIN_EXE_singleton-jobs")))
}

fn binary() -> ServerBinary {
    ServerBinary::find().unwrap_or_else(|error| panic!("{error}"))
}

/// Its last line, after checking the exit status and that there is one verdict only.
fn verdict(output: &Output, status: i32) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}{errors}");
    assert_eq!(text.matches("singleton-jobs: ").count(), 1, "{text}");
    text.lines().last().expect("it says something").to_owned()
}

/// The number before these words.
fn count(line: &str, words: &str) -> usize {
    let (before, _) = line.split_once(words).unwrap_or_else(|| panic!("{line}"));
    let number = before.split_whitespace().last();
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn each_tick_runs_once_though_a_replica_is_paused_and_another_is_killed() {
    let mut command = singleton_jobs();
    command.env(SERVER_VARIABLE, binary().path());
    let output = command.output().expect("it starts");
    let last = verdict(&output, 0);
    assert!(last.starts_with("singleton-jobs: ok: "), "{last}");
    assert!(
        last.ends_with("1 run dropped with its lease, 1 replica killed in a run"),
        "{last}"
    );
    assert_eq!(count(&last, " twice"), 0, "{last}");
    let (ticks, runs) = (count(&last, " ticks"), count(&last, " runs"));
    assert!(runs >= 12 && ticks >= runs, "{last}");
    assert_eq!(count(&last, " not run"), ticks - runs, "{last}");

    let story = String::from_utf8_lossy(&output.stdout);
    let lines = [
        "stopped (SIGSTOP) in its run",
        "goes on (SIGCONT), long after its lease",
        ": lost",
        "killed (SIGKILL) in its run",
        "asked to end (SIGTERM)",
        "who ran which tick:\n  tick      quick",
    ];
    let told: Vec<_> = lines.iter().map(|line| story.find(line)).collect();
    assert!(told.is_sorted() && told[0].is_some(), "{told:?} {story}");
    // The killed replica could not report how its run ended.
    assert!(story.contains(" lost") && story.contains(" ..."), "{story}");
}

#[test]
fn the_check_of_the_ticks_fails_without_the_claim() {
    let mut command = singleton_jobs();
    command
        .arg("--without-claim")
        .env(SERVER_VARIABLE, binary().path());
    let last = verdict(&command.output().expect("it starts"), 1);
    assert!(
        last.starts_with("singleton-jobs: not ok: without the claim: "),
        "{last}"
    );
    assert!(count(&last, " twice") > 0, "{last}");
    assert!(count(&last, " runs") > count(&last, " ticks"), "{last}");
}

#[test]
fn servers_that_are_given_are_used_by_a_replica_that_is_started_by_hand_and_ends_in_order() {
    let servers = ServerSet::start(&binary(), 3, &ServerOptions::default()).expect("they start");
    let mut command = clean(Process::command(env!("CARGO_BIN_EXE_singleton-jobs")));
    command
        .args(["replica", "alone", "--dangerous-bless"])
        .env("REDLOCK_NODES", servers.urls().join(","))
        .stdout(Stdio::piped());
    let mut replica = Process::spawn(command).expect("it starts");
    let mut output = BufReader::new(replica.take_stdout().expect("it is piped"));
    let mut lines = output.by_ref().lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    // It is to end in the middle of a run.
    let is_run = |line: &String| line.starts_with("began report ");
    let run = lines.find(is_run).expect("it runs the report");
    let tick = run.trim_start_matches("began report ");
    replica.terminate().expect("it runs");
    let rest: Vec<_> = lines.collect();
    assert!(
        rest.contains(&format!("finished report {tick}")),
        "{rest:?}"
    );
    assert!(
        rest.contains(&format!("became report {tick} ok")),
        "{rest:?}"
    );
    assert_eq!(rest.last().map(String::as_str), Some("ended 0"), "{rest:?}");
    let status = replica.finish(PATIENCE).expect("it ends");
    assert!(status.success(), "{status}");
    assert!(servers.iter().all(Server::is_running));
}

#[test]
fn without_any_server_it_says_what_is_missing() {
    let output = singleton_jobs().env("PATH", "/nonexistent").output();
    let last = verdict(&output.expect("it starts"), 1);
    assert!(last.contains("install redis-server"), "{last}");
}

#[test]
fn an_unknown_argument_is_a_mistake_of_usage() {
    for arguments in [&["--fast"][..], &["replica"]] {
        let output = singleton_jobs().args(arguments).output();
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage: singleton-jobs"));
    }
}

const PATIENCE: Duration = Duration::from_secs(10);
