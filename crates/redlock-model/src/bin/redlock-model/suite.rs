//! Sets of checks, with what must come of them.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use redlock_model::{
    Check, InvalidScope, LeaseCheck, LeaseMutation, LeaseReport, LedgerCheck, LedgerMutation,
    LedgerReport,
    LedgerRole::{self, Backfill, Retry, Schedule},
    LineCheck, LineMutation, LineReport, Mutation, NamedCheck, NamedMutation, NamedReport,
    NamedRules, NamedWorld, Report,
    Role::{self, Reader, Upgrade, Writer, WriterThenReader},
    Scope, TickCheck, TickMutation, TickReport, Verdict,
};

use crate::{timed, timed_claims, timed_leases, timed_ledger, timed_lines, timed_named};

/// A check, and what must come of it.
#[derive(Debug)]
pub(crate) struct Case {
    what: What,
    holds: bool,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Tokens(Check),
    Claims(TickCheck),
    Ledger(LedgerCheck),
    Leases(LeaseCheck),
    Lines(LineCheck),
    Named(NamedCheck),
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
        claims_hold(claims(2, 1).with_strays()),
        claims_hold(claims(2, 1).longer()),
        claims_hold(claims(2, 1).two_ticks()),
        claims_hold(claims(2, 2)),
        claims_hold(claims(3, 0)),
    ]);
    cases.extend(TickMutation::ALL.map(claims_broken));
    cases.extend([
        ledger_holds(&EACH, 1, &[(2, 3), (2, 3)], 0),
        ledger_holds(&EACH, 1, &[(1, 1)], 2),
    ]);
    cases.extend(LedgerMutation::ALL.map(ledger_broken));
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
    cases.extend(LeaseMutation::ALL.map(leases_broken));
    cases.extend([
        lines_hold(LineCheck::new(2, 0)),
        lines_hold(LineCheck::new(2, 2).map(LineCheck::plain)),
        lines_hold(LineCheck::new(3, 0).map(LineCheck::plain)),
        lines_hold(LineCheck::of_tokens(1, 0)),
        lines_hold(LineCheck::of_tokens(1, 1).map(LineCheck::plain)),
        lines_hold(LineCheck::of_tokens(2, 0).map(LineCheck::plain)),
    ]);
    cases.extend(LineMutation::ALL.map(lines_broken));
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
    cases.extend(NamedMutation::ALL.map(named_broken));
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
        claims_hold(claims(3, 1)),
        claims_hold(claims(2, 2).with_strays()),
        claims_hold(claims(2, 1).two_ticks().longer()),
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
        Case {
            holds: false,
            ..named_hold(NamedWorld::of(2).lost(1).false_pair().late_promotions())
        },
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
        let (complaint, trace) = match case.what {
            What::Tokens(check) => {
                let report = timed(&check, output)?;
                let trace = report.trace().map(ToString::to_string);
                (complaint(case, &report), trace)
            }
            What::Claims(check) => {
                let report = timed_claims(&check, output)?;
                let trace = report.trace().map(ToOwned::to_owned);
                (complaint_of_claims(case, &report), trace)
            }
            What::Ledger(check) => {
                let report = timed_ledger(&check, output)?;
                let trace = report.trace().map(ToOwned::to_owned);
                (complaint_of_ledger(case, &report), trace)
            }
            What::Leases(check) => {
                let report = timed_leases(&check, output)?;
                let trace = report.trace().map(ToOwned::to_owned);
                (complaint_of_leases(case, &report), trace)
            }
            What::Lines(check) => {
                let report = timed_lines(&check, output)?;
                let trace = report.trace().map(ToOwned::to_owned);
                (complaint_of_lines(case, &report), trace)
            }
            What::Named(check) => {
                let report = timed_named(&check, output)?;
                let trace = report.trace().map(ToOwned::to_owned);
                (complaint_of_named(case, &report), trace)
            }
        };
        let Some(complaint) = complaint else {
            continue;
        };
        wrong += 1;
        writeln!(output, "WRONG: {complaint}")?;
        if let Some(trace) = trace {
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

/// As [`complaint`], about claims.
fn complaint_of_claims(case: &Case, report: &TickReport) -> Option<&'static str> {
    match (report.holds(), case.holds) {
        (false, false) => None,
        (true, true) => (report.started() == 0).then_some("no tick was started"),
        (true, false) => Some("the broken rule was not noticed"),
        (false, true) => Some("a tick is started twice"),
    }
}

/// As [`complaint`], about a job's ledger.
fn complaint_of_ledger(case: &Case, report: &LedgerReport) -> Option<&'static str> {
    match (report.holds(), case.holds) {
        (false, false) => None,
        (true, true) => (report.ended() == 0 || report.again() == 0 || report.backfilled() == 0)
            .then_some("no run ended, none was started again, or none was backfilled"),
        (true, false) => Some("the broken rule was not noticed"),
        (false, true) => Some("retries, backfills and requests do not heed each other"),
    }
}

/// As [`complaint`], about leases.
fn complaint_of_leases(case: &Case, report: &LeaseReport) -> Option<&'static str> {
    match (report.holds(), case.holds) {
        (false, false) => None,
        (true, true) => (report.settled() == 0).then_some("nobody had a lease"),
        (true, false) => Some("the broken rule was not noticed"),
        (false, true) => Some("leases or their tokens are not in order"),
    }
}

/// As [`complaint`], about lines.
fn complaint_of_lines(case: &Case, report: &LineReport) -> Option<&'static str> {
    match (report.holds(), case.holds) {
        (false, false) => None,
        (true, true) => {
            (report.settled() == 0 || report.heard() == 0).then_some("no node gave a key")
        }
        (true, false) => Some("the broken rule was not noticed"),
        (false, true) => {
            Some("leases or their tokens are not in order, or a caller waits for ever")
        }
    }
}

/// As [`complaint`], about named servers.
fn complaint_of_named(case: &Case, report: &NamedReport) -> Option<&'static str> {
    match (report.holds(), case.holds) {
        (false, false) => None,
        (true, true) => (report.granted() == 0 || report.quarantines() == 0)
            .then_some("no client had a lease, or no quarantine began"),
        (true, false) => Some("the broken rule was not noticed"),
        (false, true) => Some("two servers gave a lease at the same time"),
    }
}

fn holds(check: Check) -> Case {
    let what = What::Tokens(check);
    Case { what, holds: true }
}

fn broken(check: Check, mutation: Mutation) -> Case {
    Case {
        what: What::Tokens(check.mutation(mutation)),
        holds: mutation.is_safe(),
    }
}

fn claims_hold(check: TickCheck) -> Case {
    let what = What::Claims(check);
    Case { what, holds: true }
}

fn claims_broken(mutation: TickMutation) -> Case {
    let what = What::Claims(TickCheck::that_notices(mutation));
    Case { what, holds: false }
}

fn ledger_holds(roles: &[LedgerRole], cuts: u8, ranges: &[(u8, u8)], requests: u8) -> Case {
    let check = LedgerCheck::new(roles, cuts).and_then(|check| check.requests(requests));
    let check = ranges.iter().fold(check, |check, (first, last)| {
        check.and_then(|check| check.backfill(*first, *last))
    });
    let what = What::Ledger(check.expect("the sets are within the limits"));
    Case { what, holds: true }
}

fn ledger_broken(mutation: LedgerMutation) -> Case {
    let what = What::Ledger(LedgerCheck::that_notices(mutation));
    Case { what, holds: false }
}

fn leases_hold(roles: &[Role], crashes: u8) -> Case {
    let check = LeaseCheck::new(roles, crashes).expect("the sets are within the limits");
    let what = What::Leases(check);
    Case { what, holds: true }
}

fn leases_broken(mutation: LeaseMutation) -> Case {
    let what = What::Leases(LeaseCheck::that_notices(mutation));
    Case { what, holds: false }
}

fn lines_hold(check: Result<LineCheck, InvalidScope>) -> Case {
    let what = What::Lines(check.expect("the sets are within the limits"));
    Case { what, holds: true }
}

fn lines_broken(mutation: LineMutation) -> Case {
    let what = What::Lines(LineCheck::that_notices(mutation));
    Case { what, holds: false }
}

fn named_hold(world: NamedWorld) -> Case {
    let check = NamedCheck::new(NamedRules::Term, world);
    let what = What::Named(check.expect("the sets are within the limits"));
    Case { what, holds: true }
}

fn without_terms(world: NamedWorld) -> Case {
    let check = NamedCheck::new(NamedRules::Server, world);
    let what = What::Named(check.expect("the sets are within the limits"));
    Case { what, holds: false }
}

fn named_broken(mutation: NamedMutation) -> Case {
    let what = What::Named(NamedCheck::that_notices(mutation));
    Case { what, holds: false }
}

fn claims(claimants: usize, crashes: u8) -> TickCheck {
    TickCheck::new(claimants, crashes).expect("the sets are within the limits")
}

fn scope(nodes: usize, clients: usize, crashes: u8, proposals: u8) -> Scope {
    Scope::new(nodes, clients, crashes, proposals).expect("the sets are within the limits")
}
