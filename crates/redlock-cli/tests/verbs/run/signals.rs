//! Signals, which are the command's.

use std::{fs, io::Write, process::Command, thread, time::Duration};

use rustix::process::Signal;

use super::{send, under};
use crate::kit::{Nodes, at_terminal, eventually, eventually_at_once, reaches, screen};

/// Says which signal it was sent, and ends.
const TELLS: &str = r#"
for signal in TERM INT HUP QUIT USR1 USR2; do trap "echo $signal >$TOLD; exit 5" $signal; done
echo ready >"$TOLD"
while :; do sleep 0.02; done
"#;

#[tokio::test]
async fn signals_reach_the_command_and_its_exit_code_comes_back() {
    let nodes = Nodes::blessed(3).await;
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    for (signal, name) in [
        (Signal::TERM, "TERM"),
        (Signal::INT, "INT"),
        (Signal::HUP, "HUP"),
        (Signal::USR1, "USR1"),
    ] {
        let mut child = under(&nodes, &[], &["sh", "-c", TELLS])
            .env("TOLD", &told)
            .spawn()
            .unwrap();
        let says = |word: &str| {
            let said = fs::read_to_string(&told).unwrap_or_default();
            said.trim() == word
        };
        eventually("it runs", || says("ready"));
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(5), "{name}");
        assert!(says(name));
    }
    assert!(nodes.client().await.try_acquire("job").await.is_ok());
}

#[tokio::test]
async fn at_a_terminal_the_command_can_read_and_be_interrupted() {
    let nodes = Nodes::blessed(3).await;
    // The command reads a line, which only the group that has the terminal can, and a key then interrupts it.
    // A shell that is interrupted while it starts a program looks at that when the program has ended.
    let line = "\"$REDLOCK\" run job -- sh -c 'read line; echo \"got $line\"; while :; do sleep 0.02; done'";
    let mut run = at_terminal(line, &nodes).spawn().unwrap();
    let mut keyboard = run.stdin.take().unwrap();
    eventually("it is held", || {
        nodes.keys().iter().any(|key| key.contains(":lock:job"))
    });
    keyboard.write_all(b"hello\r").unwrap();
    let said = screen(&mut run, "got hello");
    keyboard.write_all(b"\x03").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(128 + 2), "{said}");
}

#[tokio::test]
async fn a_script_at_a_terminal_ends_with_the_command_that_is_interrupted() {
    let nodes = Nodes::blessed(3).await;
    let folder = tempfile::tempdir().unwrap();
    let begins = folder.path().join("begins");
    // No shell: one that is interrupted while it starts a program may go on with that.
    let script = "bash -c '\"$REDLOCK\" run job -- tee \"$BEGINS\"; echo went on'";
    let mut command = at_terminal(script, &nodes);
    let mut run = command.env("BEGINS", &begins).spawn().unwrap();
    let mut keyboard = run.stdin.take().unwrap();
    eventually("it runs", || begins.exists());
    keyboard.write_all(b"\x03").unwrap();
    let done = run.wait_with_output().unwrap();
    assert!(!done.status.success(), "{done:?}");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(!said.contains("went on"), "{said}");
    assert!(nodes.client().await.try_acquire("job").await.is_ok());
}

#[tokio::test]
async fn a_script_at_a_terminal_ends_with_the_wait_that_is_interrupted() {
    let nodes = Nodes::blessed(3).await;
    let guard = nodes.client().await.try_acquire("job").await.unwrap();
    let script = "bash -c '\"$REDLOCK\" run job --wait 50s -- true; echo went on'";
    let mut run = at_terminal(script, &nodes).spawn().unwrap();
    let mut keyboard = run.stdin.take().unwrap();
    // As long as it takes until signals are caught: before that, the system's own answer ends the program.
    thread::sleep(Duration::from_millis(500));
    keyboard.write_all(b"\x03").unwrap();
    let done = run.wait_with_output().unwrap();
    assert!(!done.status.success());
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(!said.contains("went on"), "{said}");
    assert!(guard.lease().is_held());
}

#[tokio::test]
async fn signals_reach_a_command_that_left_its_group() {
    let nodes = Nodes::blessed(3).await;
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let command = ["timeout", "60", "sh", "-c", TELLS];
    let mut child = under(&nodes, &[], &command)
        .env("TOLD", &told)
        .spawn()
        .unwrap();
    let says = |word: &str| {
        let said = fs::read_to_string(&told).unwrap_or_default();
        said.trim() == word
    };
    eventually("it runs", || says("ready"));
    send(&child, Signal::TERM);
    eventually("it was told", || says("TERM"));
    assert!(child.wait().unwrap().code().is_some());
}

/// Whenever it comes: before the lock is won, before there is a supervisor, or before that has started the command.
#[tokio::test]
async fn a_signal_that_comes_as_the_lock_is_won_is_not_lost() {
    let nodes = Nodes::blessed(3).await;
    for turn in 0..30 {
        let mut child = under(&nodes, &[], &["sleep", "20"]).spawn().unwrap();
        eventually_at_once("it is held", || {
            nodes.keys().iter().any(|key| key.contains(":lock:job"))
        });
        thread::sleep(Duration::from_millis(turn / 3));
        send(&child, Signal::TERM);
        assert_eq!(child.wait().unwrap().code(), Some(128 + 15), "{turn}");
    }
}

#[tokio::test]
async fn a_key_that_is_pressed_as_the_lock_is_won_is_not_lost() {
    let nodes = Nodes::blessed(3).await;
    for turn in 0..15 {
        let line = "\"$REDLOCK\" run job -- sleep 20";
        let mut run = at_terminal(line, &nodes).spawn().unwrap();
        let mut keyboard = run.stdin.take().unwrap();
        eventually_at_once("it is held", || {
            nodes.keys().iter().any(|key| key.contains(":lock:job"))
        });
        thread::sleep(Duration::from_millis(turn));
        keyboard.write_all(b"\x03").unwrap();
        assert_eq!(run.wait().unwrap().code(), Some(128 + 2), "{turn}");
    }
}

#[tokio::test]
async fn a_signal_that_is_to_be_ignored_is() {
    let nodes = Nodes::blessed(3).await;
    let mut child = Command::new("sh");
    child.args(["-c", "trap '' HUP; exec \"$REDLOCK\" run job -- sleep 2"]);
    reaches(&mut child, &nodes);
    let mut child = child.spawn().unwrap();
    eventually("it is held", || {
        nodes.keys().iter().any(|key| key.contains(":lock:job"))
    });
    send(&child, Signal::HUP);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// What asks for a password at the terminal, though its input is not the terminal's, is stopped by the system.
#[tokio::test]
async fn a_command_that_wants_a_terminal_that_it_has_not_is_ended() {
    let nodes = Nodes::blessed(3).await;
    let line = "\"$REDLOCK\" run job -- sh -c 'read line </dev/tty' </dev/null";
    let mut child = at_terminal(line, &nodes).spawn().unwrap();
    // It is there as long as the command runs.
    let keyboard = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(keyboard);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(128 + 21), "{said}");
    assert!(said.contains("wants the terminal"), "{said}");
}

/// As `fg` does with what was begun with `&`: the terminal is its group's later than its start.
#[tokio::test]
async fn a_command_that_is_brought_to_the_front_can_read_from_the_terminal() {
    let nodes = Nodes::blessed(3).await;
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = r#"echo "runs as $$"; while [ ! -e "$GO" ]; do sleep 0.02; done; read line; echo "got $line""#;
    let line = format!("set -m; \"$REDLOCK\" run job -- sh -c '{script}' & read line; echo; fg");
    let mut shell = at_terminal(&line, &nodes).env("GO", &go).spawn().unwrap();
    let mut keyboard = shell.stdin.take().unwrap();
    screen(&mut shell, "runs as ");
    keyboard.write_all(b"\r").unwrap();
    // This says what it has brought to the front.
    screen(&mut shell, "run job");
    fs::write(&go, "").unwrap();
    keyboard.write_all(b"hello\r").unwrap();
    screen(&mut shell, "got hello");
    assert_eq!(shell.wait().unwrap().code(), Some(0));
}
