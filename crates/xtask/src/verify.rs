//! `cargo xtask verify`: the searches for violations, which take longer than a contributor waits for tests.

use std::thread;

use redlock_sandbox::SERVER_VARIABLE;

use crate::{
    server,
    step::{Failed, Step},
};

/// Runs the simulation, the exhaustive model and the long comparison of nodes with their model, one after the other.
///
/// # Errors
///
/// One of them has found something, or there is no server.
pub(crate) fn run() -> Result<(), Failed> {
    let (searches, alike) = steps()?;
    searches.into_iter().chain([alike]).try_for_each(Step::run)
}

/// Runs the same with what other work leaves of the processor, and prints each when it is over.
///
/// The comparison, which waits for its server half of the time, runs beside the others.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn run_aside() -> Result<(), Failed> {
    let (searches, alike) = steps()?;
    let aside = |step: Step| {
        let (said, outcome) = step.run_aside();
        eprintln!("{said}");
        outcome
    };
    thread::scope(|scope| {
        let alike = scope.spawn(|| aside(alike));
        let searched = searches.into_iter().try_for_each(aside);
        let compared = alike.join().expect("no step panics");
        searched.and(compared)
    })
}

/// Returns the searches, and the comparison of nodes with their model.
fn steps() -> Result<(Vec<Step>, Step), Failed> {
    let server = server::ensure()?;
    let searches = SEARCHES.map(|(name, command)| Step::cargo(name, command));
    let alike = Step::cargo("comparison of nodes with their model", ALIKE)
        .variable(SERVER_VARIABLE, server.path())
        .variable("REDLOCK_OPERATIONS", "200000");
    Ok((searches.into(), alike))
}

const SEARCHES: [(&str, &str); 9] = [
    (
        "simulation",
        "run --locked --release --package redlock-sim -- --seeds 20000",
    ),
    // Leases while clocks of nodes are set: all that a lease does not need them for.
    (
        "simulation of clocks that are set",
        "run --locked --release --package redlock-sim -- --seeds 4000 --plan clock-steps",
    ),
    // Leases of a bare majority, one of whose nodes may be lost at any moment.
    (
        "simulation of one node that is lost",
        "run --locked --release --package redlock-sim -- --seeds 2000 --plan one-gone",
    ),
    // Clients that get their CPU in slices.
    (
        "simulation of slow clients",
        "run --locked --release --package redlock-sim -- --seeds 2000 --plan slices",
    ),
    // Leases on several keys beside leases on one of them.
    (
        "simulation of sets of keys",
        "run --locked --release --package redlock-sim -- --seeds 1000 --plan sets",
    ),
    // Shared leases beside exclusive ones.
    (
        "simulation of shared leases",
        "run --locked --release --package redlock-sim -- --seeds 2000 --plan shared",
    ),
    // Claims of ticks while every clock is set.
    (
        "simulation of ticks",
        "run --locked --release --package redlock-sim -- --seeds 2000 --plan ticks-clocks",
    ),
    // Claims of ticks while an assumption is broken: nothing but what follows from that.
    (
        "simulation of clocks that are set back",
        "run --locked --release --package redlock-sim -- --seeds 200 --plan ticks-back",
    ),
    (
        "model",
        "run --locked --release --package redlock-model -- --ci",
    ),
];

/// The script and the functions on real servers, against the model of a node.
const ALIKE: &str = "test --locked --all-features --package redlock-core --test it differential::";
