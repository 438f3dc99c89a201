//! Sets of checks, with what must come of them.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use redlock_model::{
    Check, InvalidScope, LeaseCheck, LeaseMutation, LedgerCheck, LedgerMutation,
    LedgerRole::{self, Backfill, Retry, Schedule},
    LineCheck, LineMutation, Mutation, NamedCheck, NamedMutation, NamedRules, NamedWorld,
    Role::{self, Reader, Upgrade, Writer, WriterThenReader},
    Scope, TickCheck, TickMutation, Verdict,
};

use crate::any::{AnyCheck, CheckOutcome, timed};

/// A check, and what must come of it.
#[derive(Debug)]
pub(crate) struct Case {
    check: Box<dyn AnyCheck>,
    holds: bool,
}

/// A replica for each role.
const EACH: [LedgerRole; 4] = LedgerRole::ALL;

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
    cases.extend([
        holds(claims(2, 1).with_strays()),
        holds(claims(2, 1).longer()),
        holds(claims(2, 1).two_ticks()),
        holds(claims(2, 2)),
        holds(claims(3, 0)),
    ]);
    cases.extend(TickMutation::ALL.map(|it| breaks(TickCheck::that_notices(it))));
    cases.extend([
        ledger_holds(&EACH, 1, &[(2, 3), (2, 3)], 0),
        ledger_holds(&EACH, 1, &[(1, 1)], 2),
    ]);
    cases.extend(LedgerMutation::ALL.map(|it| breaks(LedgerCheck::that_notices(it))));
    cases.extend([
        leases_hold(&[Reader, Reader], 2),
        leases_hold(&[WriterThenReader, Writer], 2),
        leases_hold(&[WriterThenReader, Reader], 2),
        leases_hold(&[WriterThenReader, Reader, Writer], 0),
        leases_hold(&[Writer, Reader, Reader], 0),
        leases_hold(&[Reader, Upgrade], 2),
        leases_hold(&[Reader, Upgrade, Reader], 0),
        leases_hold(&[Reader, Upgrade, Writer], 0),
    ]);
    cases.extend(LeaseMutation::ALL.map(|it| breaks(LeaseCheck::that_notices(it))));
    cases.extend([
        lines_hold(LineCheck::new(2, 0)),
        lines_hold(LineCheck::new(2, 2).map(LineCheck::plain)),
        lines_hold(LineCheck::new(3, 0).map(LineCheck::plain)),
        lines_hold(LineCheck::of_tokens(1, 0)),
        lines_hold(LineCheck::of_tokens(1, 1).map(LineCheck::plain)),
        lines_hold(LineCheck::of_tokens(2, 0).map(LineCheck::plain)),
    ]);
    cases.extend(LineMutation::ALL.map(|it| breaks(LineCheck::that_notices(it))));
    cases.extend([
        named_hold(NamedWorld::of(2).restarts(1)),
        named_hold(NamedWorld::of(2).false_pair().late_promotions()),
        named_hold(NamedWorld::of(3)),
        named_hold(NamedWorld::of(1).lost(1).late_requests()),
        named_hold(NamedWorld::of(1).lost(2).restarts(1)),
        named_hold(NamedWorld::of(1).lost(1).replaced(1)),
        named_hold(NamedWorld::of(1).lost(1).slow_answers().plain()),
        named_hold(NamedWorld::of(1).five(3)),
        named_hold(NamedWorld::of(2).clocks(2, 2)),
        without_terms(NamedWorld::of(2)),
        without_terms(NamedWorld::of(1).lost(1)),
        without_terms(NamedWorld::of(1).five(2)),
        without_terms(NamedWorld::of(2).new_data()),
    ]);
    cases.extend(NamedMutation::ALL.map(|it| breaks(NamedCheck::that_notices(it))));
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
    cases.extend([
        holds(claims(3, 1)),
        holds(claims(2, 2).with_strays()),
        holds(claims(2, 1).two_ticks().longer()),
        ledger_holds(&[Schedule, Schedule, Retry, Backfill], 2, &[(2, 3)], 0),
        ledger_holds(
            &[Schedule, Retry, Backfill, Backfill],
            1,
            &[(2, 3), (1, 2)],
            0,
        ),
        leases_hold(&[WriterThenReader, WriterThenReader], 2),
        leases_hold(&[WriterThenReader, Reader, Reader], 0),
        lines_hold(LineCheck::new(2, 2)),
        lines_hold(LineCheck::new(3, 1).map(LineCheck::plain)),
        lines_hold(LineCheck::of_tokens(2, 0)),
        lines_hold(LineCheck::of_tokens(1, 2)),
        lines_hold(LineCheck::of_tokens(2, 2).map(LineCheck::plain)),
        named_hold(NamedWorld::of(2).late_requests()),
        named_hold(NamedWorld::of(3).false_pair()),
        named_hold(NamedWorld::of(3).late_promotions()),
        breaks(named(
            NamedRules::Term,
            NamedWorld::of(2).lost(1).false_pair().late_promotions(),
        )),
        named_hold(NamedWorld::of(2).lost(1).restarts(1)),
        named_hold(NamedWorld::of(2).lost(2)),
        named_hold(
            NamedWorld::of(2)
                .lost(1)
                .false_pair()
                .flagged()
                .late_promotions(),
        ),
        named_hold(NamedWorld::of(1).lost(3).restarts(1)),
        named_hold(NamedWorld::of(1).lost(1).slow_answers()),
        named_hold(NamedWorld::of(1).lost(2).slow_answers().plain()),
        named_hold(NamedWorld::of(1).five(2).lost(1)),
        named_hold(NamedWorld::of(2).clocks(2, 1).late_requests()),
    ]);
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
        let found = timed(&*case.check, output)?;
        let Some(complaint) = complaint(case, &found) else {
            continue;
        };
        wrong += 1;
        writeln!(output, "WRONG: {complaint}")?;
        if let Verdict::Violated(trace) = found.verdict {
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

/// Returns what is wrong with the outcome of a case.
fn complaint(case: &Case, found: &CheckOutcome) -> Option<&'static str> {
    match (&found.verdict, case.holds) {
        (Verdict::Violated(_), false) => None,
        (Verdict::Holds, true) => found.missing,
        (Verdict::Holds, false) => Some("the broken rule was not noticed"),
        _ => Some(found.breach),
    }
}

fn holds(check: impl AnyCheck + 'static) -> Case {
    let check = Box::new(check);
    Case { check, holds: true }
}

fn breaks(check: impl AnyCheck + 'static) -> Case {
    let check = Box::new(check);
    Case {
        check,
        holds: false,
    }
}

fn broken(check: Check, mutation: Mutation) -> Case {
    Case {
        holds: mutation.is_safe(),
        ..holds(check.mutation(mutation))
    }
}

fn ledger_holds(roles: &[LedgerRole], cuts: u8, ranges: &[(u8, u8)], requests: u8) -> Case {
    let check = LedgerCheck::new(roles, cuts).and_then(|check| check.requests(requests));
    let check = ranges.iter().fold(check, |check, (first, last)| {
        check.and_then(|check| check.backfill(*first, *last))
    });
    holds(check.expect(WITHIN))
}

fn leases_hold(roles: &[Role], crashes: u8) -> Case {
    holds(LeaseCheck::new(roles, crashes).expect(WITHIN))
}

fn lines_hold(check: Result<LineCheck, InvalidScope>) -> Case {
    holds(check.expect(WITHIN))
}

fn named_hold(world: NamedWorld) -> Case {
    holds(named(NamedRules::Term, world))
}

fn without_terms(world: NamedWorld) -> Case {
    breaks(named(NamedRules::Server, world))
}

fn named(rules: NamedRules, world: NamedWorld) -> NamedCheck {
    NamedCheck::new(rules, world).expect(WITHIN)
}

fn claims(claimants: usize, crashes: u8) -> TickCheck {
    TickCheck::new(claimants, crashes).expect(WITHIN)
}

fn scope(nodes: usize, clients: usize, crashes: u8, proposals: u8) -> Scope {
    Scope::new(nodes, clients, crashes, proposals).expect(WITHIN)
}

const WITHIN: &str = "the sets are within the limits";
