//! What is not a verb ends with the usage and status 2.

use std::process::Command;

#[test]
fn no_verb_an_unknown_verb_and_excess_arguments_are_refused() {
    for arguments in [&[][..], &["deploy"], &["ci", "quickly"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let usage = String::from_utf8(output.stderr).unwrap();
        assert!(usage.starts_with("usage: cargo xtask <verb>"), "{usage}");
    }
}
