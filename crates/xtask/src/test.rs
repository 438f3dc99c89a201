//! `cargo xtask test`: every test of the workspace, on real servers.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::Path,
    thread::{self, available_parallelism},
};

use redlock_sandbox::SERVER_VARIABLE;

use crate::{
    browser, programs, server,
    slowest::{Slowest, Times},
    step::{Failed, Step, now},
};

/// Runs all tests, or those that `arguments` select, and makes sure of a server and a browser first; then prints the ten slowest.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failed> {
    let server = server::ensure()?;
    eprintln!("== server: {}", server.path().display());
    if browser::is_needed_by(arguments) {
        eprintln!("== browser: {}", browser::ensure()?.display());
    }
    let threads = threads();
    let at_once = threads.to_str().and_then(|threads| threads.parse().ok());
    let mut slowest = Slowest::new(at_once.unwrap_or(1));
    let tested = if arguments.is_empty() {
        all(server.path(), &threads, &mut slowest)
    } else {
        // Without `--workspace` cargo means all of it too, and a `-p` among the arguments can narrow it.
        let tests = Step::cargo("tests", "test --all-features").arguments(arguments);
        let mut times = Times::new(now());
        let tested = with_server(tests, server.path(), &threads)
            .run_last_reading(|line| times.read(line, now()));
        slowest.add(times);
        tested
    };
    let has_chosen = |argument: &OsString| argument == OsStr::new("--test-threads");
    if !arguments.iter().any(has_chosen) {
        eprintln!("== the slowest tests:");
        for line in slowest.lines() {
            eprintln!("{line}");
        }
    }
    tested
}

/// Runs all tests, and does not stop at the first that fails: a run takes long enough for one to want all that it can tell.
fn all(server: &Path, threads: &OsStr, slowest: &mut Slowest) -> Result<(), Failed> {
    eprintln!("== tests: all of them, about 20 minutes on two cores with the first build");
    let programs = programs::build()?;
    thread::scope(|scope| {
        let examples = Step::cargo("examples in the documentation", DOCUMENTED);
        let examples = with_server(examples, server, threads);
        let examples = scope.spawn(|| examples.run_aside());
        let tested = programs::run(&programs, server, threads, slowest);
        let (said, documented) = examples.join().expect("no step panics");
        eprintln!("{said}");
        tested.and(documented)
    })
}

fn with_server(tests: Step, server: &Path, threads: &OsStr) -> Step {
    tests
        .alone("cargo xtask test")
        .variable(SERVER_VARIABLE, server)
        .variable(programs::THREADS, threads)
}

/// Returns how many tests of a program run at once: two for each core, unless the caller has chosen.
///
/// Most tests wait for time to pass, most of the time.
fn threads() -> OsString {
    let chosen = env::var_os(programs::THREADS);
    chosen.unwrap_or_else(|| {
        let cores = available_parallelism().map_or(1, usize::from);
        (2 * cores).to_string().into()
    })
}

const DOCUMENTED: &str = "test --locked --workspace --all-features --no-fail-fast --doc";
