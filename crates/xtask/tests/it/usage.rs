//! What cannot be done is refused at once, with what to type instead.

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

#[test]
fn a_server_that_is_named_and_missing_is_neither_replaced_nor_installed() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("test")
        .env("REDLOCK_REDIS_SERVER", "/no/such/server")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.starts_with("the tests need a server: "),
        "{message}"
    );
    assert!(
        message.ends_with("type: unset REDLOCK_REDIS_SERVER\n"),
        "{message}"
    );
}

#[test]
fn a_browser_that_is_named_and_missing_is_neither_replaced_nor_installed() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["test", "-p", "redlock-cli"])
        // Any program: it is not started before a browser is there.
        .env("REDLOCK_REDIS_SERVER", env!("CARGO_BIN_EXE_xtask"))
        .env("REDLOCK_TEST_BROWSER", "/no/such/browser")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    let last = message.lines().last();
    let expected = "REDLOCK_TEST_BROWSER names /no/such/browser, which is not a program";
    assert_eq!(last, Some(expected), "{message}");
}

#[test]
fn without_a_server_and_without_an_installer_nothing_is_run() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("test")
        .env_remove("REDLOCK_REDIS_SERVER")
        .env("PATH", "/no/such/folder")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("to install one, type: "), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}
