//! `cargo xtask test`: every test of the workspace, on real servers.

use std::{
    env,
    ffi::{OsStr, OsString},
    thread::available_parallelism,
};

use redlock_sandbox::SERVER_VARIABLE;

use crate::{
    server,
    slowest::Slowest,
    step::{Failed, Step, now},
};

/// Runs all tests, or those that `arguments` select, and makes sure of a server first; then prints the ten slowest.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failed> {
    let server = server::ensure()?;
    eprintln!("== server: {}", server.path().display());
    let threads = threads();
    // Without `--workspace` cargo means all of it too, and a `-p` among the arguments can narrow it.
    // A run of all takes long enough for one to want all that it can tell.
    let command = if arguments.is_empty() {
        "test --locked --workspace --all-features --no-fail-fast"
    } else {
        "test --all-features"
    };
    let at_once = threads.to_str().and_then(|threads| threads.parse().ok());
    let mut slowest = Slowest::new(at_once.unwrap_or(1), now());
    let tested = Step::cargo("tests", command)
        .arguments(arguments)
        .alone("cargo xtask test")
        .variable(SERVER_VARIABLE, server.path())
        .variable(THREADS, &threads)
        .run_last_reading(|line| slowest.read(line, now()));
    let has_chosen = |argument: &OsString| argument == OsStr::new("--test-threads");
    if !arguments.iter().any(has_chosen) {
        eprintln!("== the slowest tests:");
        for line in slowest.lines() {
            eprintln!("{line}");
        }
    }
    tested
}

/// Returns how many tests of a file run at once: two for each core, unless the caller has chosen.
///
/// Most tests wait for time to pass, most of the time.
fn threads() -> OsString {
    let chosen = env::var_os(THREADS);
    chosen.unwrap_or_else(|| {
        let cores = available_parallelism().map_or(1, usize::from);
        (2 * cores).to_string().into()
    })
}

/// The test harness's own variable.
const THREADS: &str = "RUST_TEST_THREADS";
