//! Explores small worlds of the protocol from the command line; `redlock-model --help` says how.

mod any;
mod options;
mod suite;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser as _;
use redlock_model::Verdict;

use crate::{
    any::AnyCheck,
    options::{Command, Options},
};

fn main() -> ExitCode {
    let command = match Options::parse().command() {
        Ok(command) => command,
        Err(error) => {
            eprintln!("redlock-model: {error}");
            eprintln!("redlock-model --help says what there is");
            return ExitCode::from(2);
        }
    };
    let mut output = io::stdout().lock();
    let outcome = match command {
        Command::One(check) => one(&*check, &mut output),
        Command::Suite(cases) => suite::run(&cases, &mut output),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("redlock-model: {error}");
        ExitCode::FAILURE
    })
}

/// Runs one check: a breach is a failure, whatever rule was broken to get it.
fn one(check: &dyn AnyCheck, output: &mut impl Write) -> io::Result<ExitCode> {
    match any::timed(check, output)?.verdict {
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
