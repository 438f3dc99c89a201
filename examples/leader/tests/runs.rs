//! The example as a newcomer runs it: as a process, judged by its last line and exit status.

use std::process::{Command, Output};

use redlock_sandbox::{SERVER_VARIABLE, ServerBinary};

fn leader() -> Command {
    Command::new(env!("CARGO_BIN_EXE_leader"))
}

fn story(output: Output) -> String {
    String::from_utf8(output.stdout).expect("it tells a text")
}

#[test]
fn another_replica_leads_after_a_kill_a_freeze_and_a_resignation() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let output = leader().env(SERVER_VARIABLE, binary.path()).output();
    let output = output.expect("it starts");
    let is_success = output.status.success();
    let story = story(output);
    assert!(is_success, "{story}");
    let last = story.lines().last().unwrap_or_default();
    assert!(last.starts_with("leader: ok: terms ["), "{story}");
    assert!(story.matches(" leads, in term ").count() >= 4, "{story}");
    let lines = ["is killed", "is frozen", "goes on", "is asked to end"];
    let told: Vec<_> = lines.iter().map(|line| story.find(line)).collect();
    assert!(told.is_sorted() && told[0].is_some(), "{story}");
}

#[test]
fn without_any_server_it_says_what_to_install() {
    let mut command = leader();
    command
        .env("PATH", "/nonexistent")
        .env_remove(SERVER_VARIABLE);
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let story = story(output);
    assert!(
        story.starts_with("leader: failed: install redis-server"),
        "{story}"
    );
}
