//! The example as a newcomer runs it: as a process, judged by its last line and exit status.

use std::process::Command;

use redlock_sandbox::{SERVER_VARIABLE, ServerBinary};

#[test]
fn callers_are_served_in_the_order_in_which_they_came() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fair-lock"));
    let output = command.env(SERVER_VARIABLE, binary.path()).output();
    let output = output.expect("it starts");
    let story = String::from_utf8(output.stdout).expect("it tells a text");
    assert!(output.status.success(), "{story}");
    let last = story.lines().last().unwrap_or_default();
    assert!(last.starts_with("fair-lock: ok: "), "{story}");
    assert!(last.ends_with(": A B C A B C A B C"), "{story}");
    assert_eq!(story.matches(" is served").count(), 9, "{story}");
}
