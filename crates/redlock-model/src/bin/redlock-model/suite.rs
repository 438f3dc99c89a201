//! Sets of checks, with what must come of them.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use redlock_model::{Check, Mutation, Report, Scope, Verdict};

use crate::timed;

/// A check, and what must come of it.
#[derive(Debug)]
pub(crate) struct Case {
    check: Check,
    holds: bool,
}

/// What continuous integration runs.
pub(crate) fn ci() -> Vec<Case> {
    let mut cases = vec![
        holds(Check::new(scope(2, 3, 0, 3))),
        holds(Check::new(scope(3, 3, 0, 3))),
        holds(Check::new(scope(4, 2, 1, 2))),
        holds(Check::new(scope(5, 2, 0, 3))),
        holds(Check::new(scope(3, 3, 1, 1))),
        holds(Check::new(scope(3, 2, 2, 3))),
        holds(Check::new(scope(3, 2, 0, 3)).without_pruning()),
        holds(Check::new(scope(3, 2, 1, 1)).without_pruning()),
    ];
    for mutation in Mutation::ALL {
        let scope = scope(3, 2, crashes_of(mutation), 2);
        cases.push(broken(Check::new(scope), mutation));
    }
    cases
}

/// Larger worlds, and the plain search for each mutation.
pub(crate) fn nightly() -> Vec<Case> {
    let mut cases = vec![
        holds(Check::new(scope(3, 3, 1, 3))),
        holds(Check::new(scope(3, 4, 0, 2))),
        holds(Check::new(scope(4, 3, 0, 3))),
        holds(Check::new(scope(5, 3, 0, 2))),
        holds(Check::new(scope(5, 2, 1, 3))),
        holds(Check::new(scope(3, 2, 3, 2))),
        holds(Check::new(scope(3, 2, 2, 2)).without_symmetry()),
        holds(Check::new(scope(3, 2, 1, 2)).without_pruning()),
        holds(Check::new(scope(3, 3, 0, 1)).without_pruning()),
    ];
    for mutation in Mutation::ALL {
        let world = scope(3, 2, crashes_of(mutation), 1);
        cases.push(broken(Check::new(world).without_pruning(), mutation));
        if mutation.is_safe() {
            cases.push(broken(Check::new(scope(3, 3, 0, 3)), mutation));
            cases.push(broken(Check::new(scope(3, 2, 2, 3)), mutation));
        }
    }
    cases
}

/// How many crashes it takes to notice a mutation, or one if none is needed.
const fn crashes_of(mutation: Mutation) -> u8 {
    match mutation {
        // What these break matters only once a majority has lost its counters.
        Mutation::DegradedFloor | Mutation::FloorUnread => 2,
        _ => 1,
    }
}

/// Runs every case, tells which came out otherwise than it must, and fails if one did.
pub(crate) fn run(cases: &[Case], output: &mut impl Write) -> io::Result<ExitCode> {
    let mut wrong = 0;
    for case in cases {
        let report = timed(&case.check, output)?;
        let Some(complaint) = complaint(case, &report) else {
            continue;
        };
        wrong += 1;
        writeln!(output, "WRONG: {complaint}")?;
        if let Some(trace) = report.trace() {
            writeln!(output, "{trace}")?;
        }
    }
    let count = cases.len();
    if wrong == 0 {
        writeln!(output, "all {count} came out as they must")?;
        Ok(ExitCode::SUCCESS)
    } else {
        writeln!(
            output,
            "{wrong} of {count} came out otherwise than they must"
        )?;
        Ok(ExitCode::FAILURE)
    }
}

/// What is wrong with what came of it.
fn complaint(case: &Case, report: &Report) -> Option<&'static str> {
    match (report.verdict(), case.holds) {
        (Verdict::Violated(_), false) => None,
        (Verdict::Holds, true) => {
            // Where nothing happens, nothing goes wrong.
            let scope = report.scope();
            let idle = report.agreed() == 0
                || report.written_back() == 0
                || scope.crashes() > 0 && report.opened() == 0;
            idle.then_some(
                "no client finished in one of the ways there are, or no node voted again",
            )
        }
        (Verdict::Holds, false) => Some("the broken rule was not noticed"),
        _ => Some("tokens do not keep their order"),
    }
}

fn holds(check: Check) -> Case {
    Case { check, holds: true }
}

fn broken(check: Check, mutation: Mutation) -> Case {
    Case {
        check: check.mutation(mutation),
        holds: mutation.is_safe(),
    }
}

fn scope(nodes: usize, clients: usize, crashes: u8, proposals: u8) -> Scope {
    Scope::new(nodes, clients, crashes, proposals).expect("the sets are within the limits")
}
