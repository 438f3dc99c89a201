//! `cargo xtask test`: every test of the workspace, on real servers, and the searches for violations.

use std::{
    env,
    ffi::OsString,
    thread::{self, available_parallelism},
};

use redlock_sandbox::SERVER_VARIABLE;

use crate::{
    server,
    step::{Failed, Step},
};

/// Runs all tests, or those that `arguments` select, and makes sure of a server first.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failed> {
    let server = server::ensure()?;
    eprintln!("== server: {}", server.path().display());
    let tests = |command| {
        Step::cargo("tests", command)
            .arguments(arguments)
            .alone("cargo xtask test")
            .variable(SERVER_VARIABLE, server.path())
            .variable(THREADS, threads())
            .run_last()
    };
    if !arguments.is_empty() {
        // Without `--workspace` cargo means all of it too, and a `-p` among the arguments can narrow it.
        return tests("test --all-features");
    }
    // Tests mostly wait, and the searches do not.
    thread::scope(|scope| {
        let searches = scope.spawn(searches);
        // A run takes long enough for one to want all that it can tell.
        let tested = tests("test --locked --workspace --all-features --no-fail-fast");
        let searched = searches.join();
        let searched = searched.unwrap_or_else(|_| Err(Failed("the searches panicked".to_owned())));
        match (tested, searched) {
            (Err(Failed(tests)), Err(Failed(searches))) => {
                Err(Failed(format!("{searches}\n{tests}")))
            }
            (tested, searched) => tested.and(searched),
        }
    })
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

/// Runs the simulation of the protocol and the exhaustive model, which are worth optimising for, and prints each when it
/// is over.
fn searches() -> Result<(), Failed> {
    let searches = [
        ("simulation", SIMULATION),
        ("simulation of clocks that are set", CLOCKS),
        ("simulation of one node that is lost", ONE_GONE),
        ("simulation of sets of keys", SETS),
        ("simulation of what is shared", SHARED),
        ("simulation of ticks", TICKS),
        ("model", MODEL),
    ];
    for (name, command) in searches {
        let (said, outcome) = Step::cargo(name, command).run_aside();
        eprintln!("{said}");
        outcome?;
    }
    Ok(())
}

/// The test harness's own variable.
const THREADS: &str = "RUST_TEST_THREADS";

const SIMULATION: &str = "run --locked --release --package redlock-sim -- --seeds 20000";

/// Leases while clocks of nodes are set: all that a lease does not need them for.
const CLOCKS: &str =
    "run --locked --release --package redlock-sim -- --seeds 4000 --plan clock-steps";

/// Leases of a bare majority, one of whose nodes may be lost at any moment.
const ONE_GONE: &str =
    "run --locked --release --package redlock-sim -- --seeds 1000 --plan one-gone";

/// Leases on several keys beside leases on one of them.
const SETS: &str = "run --locked --release --package redlock-sim -- --seeds 1000 --plan sets";

/// Leases that others may share beside leases that are had alone.
const SHARED: &str = "run --locked --release --package redlock-sim -- --seeds 2000 --plan shared";

/// Claims of ticks while every clock is set.
const TICKS: &str =
    "run --locked --release --package redlock-sim -- --seeds 2000 --plan ticks-clocks";

const MODEL: &str = "run --locked --release --package redlock-model -- --ci";
