//! The program, as it is typed.

use std::process::{Command, Output};

fn sim(arguments: &[&str], seed: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redlock-sim"));
    command.args(arguments).env_remove("REDLOCK_SEED");
    if let Some(seed) = seed {
        command.env("REDLOCK_SEED", seed);
    }
    command.output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn it_says_how_many_worlds_it_ran_and_what_happened_in_them() {
    let output = sim(&["--seeds", "5", "--first", "9", "--verbose"], None);
    assert_eq!(output.status.code(), Some(0));
    let said = said(&output);
    for words in [
        "5 seeds in",
        "a minute",
        "acquisitions",
        "write-backs",
        "seedings",
        "heals",
        "tombstones",
        "nothing went wrong",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn it_runs_one_seed_and_says_what_happens() {
    let output = sim(&["--plan", "clock-steps"], Some("3"));
    assert_eq!(output.status.code(), Some(0));
    let said = said(&output);
    assert!(said.contains("acquires key"), "{said}");
    assert!(said.contains("everything is repaired"), "{said}");
    assert!(said.contains("trace hash"), "{said}");
}

#[test]
fn it_does_not_guess_what_is_meant() {
    for (arguments, seed) in [
        (&["--plan", "good"][..], None),
        (&["--seeds", "-1"], None),
        (&["seeds"], None),
        (&[], Some("one")),
    ] {
        let output = sim(arguments, seed);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("usage: redlock-sim"), "{error}");
    }
}
