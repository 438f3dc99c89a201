//! Signals, which are the command's.

use std::{fs, process::Command};

use rustix::process::Signal;

use super::{send, under};
use crate::kit::{Nodes, eventually};

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
    // It reads a line, which only who has the terminal can, and is then interrupted by a key.
    let inner = "read line; echo \"got $line\"; sleep 60";
    let mut typed = under(&nodes, &[], &["sh", "-c", inner]);
    let program = env!("CARGO_BIN_EXE_redlock");
    let line = format!("{program} run job -- sh -c '{inner}'");
    let keys = "(sleep 1; printf 'hello\\r'; sleep 1; printf '\\003'; sleep 1)";
    let mut terminal = Command::new("sh");
    terminal.args(["-c", &format!("{keys} | script -qec \"$LINE\" /dev/null")]);
    terminal.env("LINE", line);
    for (name, value) in typed.env("SHELL", "/bin/sh").get_envs() {
        if let Some(value) = value {
            terminal.env(name, value);
        }
    }
    let output = terminal.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("got hello"), "{said}");
    assert_eq!(output.status.code(), Some(128 + 2), "{said}");
}
