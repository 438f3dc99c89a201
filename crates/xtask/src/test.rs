//! `cargo xtask test`: every test of the workspace, on real servers.

use std::ffi::OsString;

use redlock_sandbox::SERVER_VARIABLE;

use crate::{
    server,
    step::{Failed, Step},
};

/// Runs all tests, or those that `arguments` select, and makes sure of a server first.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failed> {
    let server = server::ensure()?;
    eprintln!("== server: {}", server.path().display());
    // Without `--workspace` cargo means all of it too, and a `-p` among the arguments can narrow it.
    let command = if arguments.is_empty() {
        "test --locked --workspace --all-features"
    } else {
        "test --all-features"
    };
    Step::cargo("tests", command)
        .arguments(arguments)
        .alone("cargo xtask test")
        .variable(SERVER_VARIABLE, server.path())
        .run_last()
}
