//! `cargo xtask verify`: the searches for violations, which take longer than a contributor waits for tests.

use std::sync::atomic::{AtomicBool, Ordering};

use redlock_sandbox::SERVER_VARIABLE;

use crate::{
    server,
    step::{Failed, Step},
};

/// Runs the simulation, the exhaustive model, the search among inputs and the long comparison of nodes with their model, one
/// after the other.
///
/// # Errors
///
/// One of them has found something, or there is no server.
pub(crate) fn run() -> Result<(), Failed> {
    searches().try_for_each(Step::run)?;
    compare()
}

/// Runs the simulation and the model with what other work leaves of the processor, and prints each when it is over.
///
/// # Errors
///
/// One of them has found something. Once the other work `has_failed`, the rest is not begun.
pub(crate) fn search_aside(has_failed: &AtomicBool) -> Result<(), Failed> {
    let mut searches = searches().take_while(|_| !has_failed.load(Ordering::Relaxed));
    searches.try_for_each(aside)
}

/// Runs the long comparison of nodes with their model.
///
/// # Errors
///
/// A node did what its model does not, or there is no server.
pub(crate) fn compare() -> Result<(), Failed> {
    let server = server::ensure()?;
    Step::cargo("comparison of nodes with their model", ALIKE)
        .variable(SERVER_VARIABLE, server.path())
        .variable("REDLOCK_OPERATIONS", "200000")
        .run()
}

fn aside(step: Step) -> Result<(), Failed> {
    let (said, outcome) = step.run_aside();
    eprintln!("{said}");
    outcome
}

fn searches() -> impl Iterator<Item = Step> {
    let searches = SEARCHES.iter().map(|(name, package)| {
        let command = format!("run --locked --release --package redlock-{package}");
        Step::cargo(name, &command)
    });
    let mistakes = Step::cargo("messages for mistakes", MISTAKES);
    let inputs = Step::cargo("inputs from outside", INPUTS).variable("PROPTEST_CASES", CASES);
    searches.chain([mistakes, inputs])
}

/// What servers, files, variables and callers may say, whatever it is.
const INPUTS: &str = "test --locked --workspace --all-features --lib any_";

/// As many of each kind as take a minute.
const CASES: &str = "5000";

/// What the compiler says to mistakes with a layer.
const MISTAKES: &str = "test --locked --workspace --all-features --test mistakes";

/// The searches: the name of each, and its package with the arguments.
const SEARCHES: [(&str, &str); 10] = [
    ("simulation", "sim -- --seeds 10000"),
    // Leases while clocks of nodes are set: all that a lease does not need them for.
    (
        "simulation of clocks that are set",
        "sim -- --seeds 2000 --plan clock-steps",
    ),
    // Leases of a bare majority, one of whose nodes may be lost at any moment.
    (
        "simulation of one node that is lost",
        "sim -- --seeds 1000 --plan one-gone",
    ),
    // Clients that get their CPU in slices.
    (
        "simulation of slow clients",
        "sim -- --seeds 1000 --plan slices",
    ),
    // Leases on several keys beside leases on one of them.
    (
        "simulation of sets of keys",
        "sim -- --seeds 500 --plan sets",
    ),
    // Shared leases beside exclusive ones.
    (
        "simulation of shared leases",
        "sim -- --seeds 1000 --plan shared",
    ),
    // Claims of ticks while every clock is set.
    (
        "simulation of ticks",
        "sim -- --seeds 1000 --plan ticks-clocks",
    ),
    // Claims of ticks while an assumption is broken: nothing but what follows from that.
    (
        "simulation of clocks that are set back",
        "sim -- --seeds 200 --plan ticks-back",
    ),
    // Two servers behind the name of each node.
    (
        "simulation of servers that others name",
        "sim -- --seeds 500 --plan named",
    ),
    ("model", "model -- --ci"),
];

/// Transactions and the script on real servers, against the model of a node.
///
/// With the features of the run of all tests, so that nothing is built twice.
const ALIKE: &str = "test --locked --workspace --all-features --test it differential::";
