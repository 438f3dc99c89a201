//! Runs simulated worlds, and says what went wrong in them.
//!
//! `redlock-sim [--seeds N] [--first S] [--plan NAME] [--threads N] [--keep-going] [--verbose]`
//!
//! With `REDLOCK_SEED` set to a seed it runs that one alone and prints what happens, line by line.
//! It ends with 1 if something went wrong, and with 2 if it does not understand what it was told.

mod options;

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use redlock_sim::{Campaign, CampaignReport, Counters, run};

use self::options::Options;

fn main() -> ExitCode {
    let options = match Options::parse(env::args().skip(1), env::var("REDLOCK_SEED").ok()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("redlock-sim: {error}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    let done = match options.seed {
        Some(seed) => run_one(seed, &options),
        None => run_many(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // The reader of the output has gone away.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("redlock-sim: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one world and prints what happens in it; returns whether nothing went wrong.
fn run_one(seed: u64, options: &Options) -> io::Result<bool> {
    let report = run(seed, options.plan, true);
    let mut output = io::stdout().lock();
    for line in &report.trace {
        writeln!(output, "{line}")?;
    }
    writeln!(output, "\n{}", report.counters)?;
    writeln!(output, "trace hash {:016x}", report.trace_hash)?;
    for (at, violation) in &report.violations {
        writeln!(output, "{} at {at}: {violation}", violation.name())?;
    }
    Ok(report.violations.is_empty())
}

/// Runs many worlds; returns whether nothing went wrong in any.
fn run_many(options: &Options) -> io::Result<bool> {
    let started = now();
    let outcome = Campaign::new(options.plan, options.first, options.seeds)
        .threads(options.threads)
        .going_on(options.goes_on)
        .run();
    let mut output = io::stdout().lock();
    writeln!(output, "{}", summary(&outcome.counters, started.elapsed()))?;
    if options.verbose {
        writeln!(output, "\n{}", outcome.counters)?;
    }
    tell_findings(&mut output, &outcome, options)?;
    Ok(outcome.first.is_none())
}

/// Returns the figures that matter, in a few lines.
fn summary(counters: &Counters, took: Duration) -> String {
    let per_minute = 60.0 * to_f64(counters.seeds) / took.as_secs_f64().max(1e-9);
    let each = to_f64(counters.acquisitions) / to_f64(counters.seeds).max(1.0);
    format!(
        "{} seeds in {:.1} s, {per_minute:.0} a minute\n\
         {} acquisitions ({each:.0} a seed), {} faults, {} of them crashes of nodes\n\
         {} write-backs, {} seedings, {} heals, {} tombstones that did their work",
        counters.seeds,
        took.as_secs_f64(),
        counters.acquisitions,
        counters.faults(),
        counters.crashes(),
        counters.write_backs,
        counters.seedings,
        counters.heals,
        counters.tombstones,
    )
}

fn tell_findings(
    output: &mut impl Write,
    outcome: &CampaignReport,
    options: &Options,
) -> io::Result<()> {
    let Some(first) = &outcome.first else {
        return writeln!(output, "nothing went wrong");
    };
    // The check of mutants (`cargo xtask mutants`) parses these two lines.
    writeln!(output, "\nviolation: {}", first.violation.name())?;
    writeln!(output, "needed: {} seeds", first.needed)?;
    writeln!(
        output,
        "seed {} at {}: {}",
        first.seed, first.at, first.violation
    )?;
    for (name, count) in &outcome.found {
        writeln!(output, "{count:>14}  worlds with {name}")?;
    }
    writeln!(
        output,
        "to see it happen: REDLOCK_SEED={} redlock-sim --plan {}",
        first.seed, options.plan
    )
}

/// Returns the present moment, to tell how fast worlds run.
#[expect(
    clippy::disallowed_methods,
    reason = "no deadline depends on it, and nothing simulated sees it"
)]
fn now() -> Instant {
    Instant::now()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "figures for people, rounded anyway"
)]
const fn to_f64(count: u64) -> f64 {
    count as f64
}
