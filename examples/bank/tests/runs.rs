//! The example as a newcomer runs it: as a process, judged by its last line and exit status.

use std::process::{Command, Output};

use redlock_sandbox::{SERVER_VARIABLE, ServerBinary};

/// The program without settings of the caller's, on servers of its own.
fn bank(arguments: &[&str]) -> Output {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_bank"));
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("REDLOCK_") {
            command.env_remove(variable);
        }
    }
    let command = command.env(SERVER_VARIABLE, binary.path()).args(arguments);
    command.output().expect("it starts")
}

fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    text.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn no_money_is_lost_and_no_audit_is_wrong_while_a_node_is_killed() {
    let last = last_line(&bank(&[]));
    let expected =
        "bank: ok: 300 transfers, 30 audits of which 0 wrong, 8000 of 8000 left, 1 node killed, ";
    let rest = last.strip_prefix(expected);
    let rest = rest.unwrap_or_else(|| panic!("{last}"));
    let (after, _) = rest.split_once(" transfers after that").unwrap();
    assert!(after.parse::<usize>().unwrap() > 100, "{last}");
}

/// It fails if nothing is lost and every audit is right.
#[test]
fn with_one_key_at_a_time_money_is_lost() {
    let last = last_line(&bank(&["--one-key"]));
    assert!(
        last.starts_with("bank: with one key at a time: 300 transfers"),
        "{last}"
    );
}

#[test]
fn an_unknown_argument_is_a_mistake_of_usage() {
    assert_eq!(bank(&["--help-me"]).status.code(), Some(2));
}
