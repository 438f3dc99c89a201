//! Explores small worlds of the protocol from the command line; `redlock-model --help` says how.

mod options;
mod suite;

use std::{
    env, fmt,
    io::{self, Write},
    process::ExitCode,
    time::Instant,
};

use redlock_model::{
    Check, LeaseCheck, LeaseReport, LedgerCheck, LedgerReport, LineCheck, LineReport, NamedCheck,
    NamedReport, Report, TickCheck, TickReport, Verdict,
};

use crate::options::Command;

fn main() -> ExitCode {
    let command = match options::parse(env::args_os().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("redlock-model: {error}");
            eprintln!("redlock-model --help says what there is");
            return ExitCode::from(2);
        }
    };
    let mut output = io::stdout().lock();
    let outcome = match command {
        Command::Help => write!(output, "{}", options::usage()).map(|()| ExitCode::SUCCESS),
        Command::One(check) => one(&check, &mut output),
        Command::Claims(check) => claims(&check, &mut output),
        Command::Ledger(check) => ledger(&check, &mut output),
        Command::Leases(check) => leases(&check, &mut output),
        Command::Lines(check) => lines(&check, &mut output),
        Command::Named(check) => named(&check, &mut output),
        Command::Suite(cases) => suite::run(&cases, &mut output),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("redlock-model: {error}");
        ExitCode::FAILURE
    })
}

/// Runs one check: a breach is a failure, whatever rule was broken to get it.
fn one(check: &Check, output: &mut impl Write) -> io::Result<ExitCode> {
    match timed(check, output)?.verdict() {
        Verdict::Holds => Ok(ExitCode::SUCCESS),
        Verdict::Violated(trace) => {
            writeln!(output, "{trace}")?;
            Ok(ExitCode::FAILURE)
        }
        _ => {
            writeln!(output, "more states than --max-states: nothing is shown")?;
            Ok(ExitCode::from(3))
        }
    }
}

/// Runs one check of claims.
fn claims(check: &TickCheck, output: &mut impl Write) -> io::Result<ExitCode> {
    end(timed_claims(check, output)?.trace(), output)
}

/// Runs one check of a job's ledger.
fn ledger(check: &LedgerCheck, output: &mut impl Write) -> io::Result<ExitCode> {
    end(timed_ledger(check, output)?.trace(), output)
}

/// Runs one check of leases.
fn leases(check: &LeaseCheck, output: &mut impl Write) -> io::Result<ExitCode> {
    end(timed_leases(check, output)?.trace(), output)
}

/// Runs one check of lines.
fn lines(check: &LineCheck, output: &mut impl Write) -> io::Result<ExitCode> {
    end(timed_lines(check, output)?.trace(), output)
}

/// Runs one check of named servers.
fn named(check: &NamedCheck, output: &mut impl Write) -> io::Result<ExitCode> {
    end(timed_named(check, output)?.trace(), output)
}

/// A breach is a failure.
fn end(trace: Option<&str>, output: &mut impl Write) -> io::Result<ExitCode> {
    match trace {
        None => Ok(ExitCode::SUCCESS),
        Some(trace) => {
            writeln!(output, "{trace}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Runs a check of claims, and writes a line about it.
fn timed_claims(check: &TickCheck, output: &mut impl Write) -> io::Result<TickReport> {
    let started = now();
    let report = check.run();
    let verdict = if report.holds() { "holds" } else { "violated" };
    let found = (report.states(), report.transitions(), report.bytes());
    write_line(output, verdict, found, started, check)?;
    Ok(report)
}

/// Runs a check of a job's ledger, and writes a line about it.
fn timed_ledger(check: &LedgerCheck, output: &mut impl Write) -> io::Result<LedgerReport> {
    let started = now();
    let report = check.run();
    let verdict = if report.holds() { "holds" } else { "violated" };
    let found = (report.states(), report.transitions(), report.bytes());
    write_line(output, verdict, found, started, check)?;
    Ok(report)
}

/// Runs a check of leases, and writes a line about it.
fn timed_leases(check: &LeaseCheck, output: &mut impl Write) -> io::Result<LeaseReport> {
    let started = now();
    let report = check.run();
    let verdict = if report.holds() { "holds" } else { "violated" };
    let found = (report.states(), report.transitions(), report.bytes());
    write_line(output, verdict, found, started, check)?;
    Ok(report)
}

/// Runs a check of lines, and writes a line about it.
fn timed_lines(check: &LineCheck, output: &mut impl Write) -> io::Result<LineReport> {
    let started = now();
    let report = check.run();
    let verdict = if report.holds() { "holds" } else { "violated" };
    let found = (report.states(), report.transitions(), report.bytes());
    write_line(output, verdict, found, started, check)?;
    Ok(report)
}

/// Runs a check of named servers, and writes a line about it.
fn timed_named(check: &NamedCheck, output: &mut impl Write) -> io::Result<NamedReport> {
    let started = now();
    let report = check.run();
    let verdict = if report.holds() { "holds" } else { "violated" };
    let found = (report.states(), report.transitions(), report.bytes());
    write_line(output, verdict, found, started, check)?;
    Ok(report)
}

/// Runs a check, and writes a line about it.
fn timed(check: &Check, output: &mut impl Write) -> io::Result<Report> {
    let started = now();
    let report = check.run();
    let verdict = match report.verdict() {
        Verdict::Holds => "holds",
        Verdict::Violated(_) => "violated",
        _ => "unfinished",
    };
    let found = (report.states(), report.transitions(), report.bytes());
    write_line(output, verdict, found, started, check)?;
    Ok(report)
}

/// What came of a check: its states, transitions and bytes, and how long it took.
fn write_line(
    output: &mut impl Write,
    verdict: &str,
    (states, transitions, bytes): (usize, u64, usize),
    started: Instant,
    check: impl fmt::Display,
) -> io::Result<()> {
    let seconds = started.elapsed().as_secs_f64();
    let mib = bytes >> 20;
    writeln!(
        output,
        "{verdict:<10} {states:>9} states {transitions:>10} transitions {seconds:>6.1} s {mib:>5} MiB  {check}",
    )?;
    output.flush()
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a search took, for its reader only"
)]
fn now() -> Instant {
    Instant::now()
}
