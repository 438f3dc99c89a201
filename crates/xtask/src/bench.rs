//! `cargo xtask bench`: what is fast is measured, side by side with what it is compared with.
//!
//! The clients that it takes are needed for nothing else here, so `redlock-bench` is a crate of its own.

use std::ffi::OsString;

use redlock_sandbox::SERVER_VARIABLE;

use crate::{
    server,
    step::{Failed, Step},
};

/// Measures the rows that `arguments` name, or all; fails if a goal is missed.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failed> {
    let server = server::ensure()?;
    let bench = "run --locked --quiet --release --package redlock-bench --";
    Step::cargo("bench", bench)
        .arguments(arguments)
        .variable(SERVER_VARIABLE, server.path())
        .alone("cargo xtask bench")
        .run_last()
}
