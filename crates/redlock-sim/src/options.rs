//! The command line.

use std::{num::NonZeroUsize, str::FromStr, thread};

use redlock_sim::Plan;

/// What to type.
pub(crate) const USAGE: &str = "\
usage: redlock-sim [--seeds N] [--first S] [--plan NAME] [--threads N] [--keep-going] [--verbose]

  --seeds N      how many worlds to run (default 10000)
  --first S      the first seed (default 0)
  --plan NAME    default, clock-steps, rollback, strangers, one-gone, sets, shared,
                 slices, ticks, ticks-clocks, ticks-back, or named
  --threads N    how many to run at once (default: as many as there are cores)
  --keep-going   count all worlds in which something goes wrong
  --verbose      print all counters

REDLOCK_SEED=S redlock-sim runs one world and prints what happens in it.";

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) seeds: u64,
    pub(crate) first: u64,
    pub(crate) plan: Plan,
    pub(crate) threads: NonZeroUsize,
    pub(crate) goes_on: bool,
    pub(crate) verbose: bool,
    /// The only seed to run.
    pub(crate) seed: Option<u64>,
}

impl Options {
    /// Reads the arguments, and the value of `REDLOCK_SEED`; an error says what is wrong.
    pub(crate) fn parse(
        mut arguments: impl Iterator<Item = String>,
        seed: Option<String>,
    ) -> Result<Self, String> {
        let mut options = Self {
            seeds: 10_000,
            first: 0,
            plan: Plan::Default,
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            goes_on: false,
            verbose: false,
            seed: seed.map(|seed| number("REDLOCK_SEED", &seed)).transpose()?,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "--seeds" => options.seeds = number("--seeds", &value()?)?,
                "--first" => options.first = number("--first", &value()?)?,
                "--threads" => options.threads = number("--threads", &value()?)?,
                "--plan" => {
                    let plan: Result<Plan, _> = value()?.parse();
                    options.plan = plan.map_err(|error| error.to_string())?;
                }
                "--keep-going" => options.goes_on = true,
                "--verbose" => options.verbose = true,
                _ => return Err(format!("there is no argument {argument}")),
            }
        }
        Ok(options)
    }
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{name}: {text:?} is not a number that it takes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str], seed: Option<&str>) -> Result<Options, String> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        Options::parse(arguments, seed.map(str::to_owned))
    }

    #[test]
    fn arguments_are_read() {
        let options = parse(
            &["--seeds", "7", "--first", "3", "--plan", "clock-steps"],
            Some("12"),
        );
        let options = options.unwrap();
        assert_eq!((options.seeds, options.first), (7, 3));
        assert_eq!(options.plan, Plan::ClockSteps);
        assert_eq!(options.seed, Some(12));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for bad in [
            &["--seeds"][..],
            &["--seeds", "many"],
            &["--threads", "0"],
            &["--plan", "none"],
            &["--sedes", "1"],
        ] {
            assert!(parse(bad, None).is_err(), "{bad:?}");
        }
        assert!(parse(&[], Some("x")).is_err());
    }
}
