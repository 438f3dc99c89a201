//! A mutant, and the checks that must notice it.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use super::patch::Patch;
use crate::step::Failed;

/// A mistake, and the checks that must notice it.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// Its group and its own name, as in `protocol/no-drift`.
    pub(super) name: String,
    pub(super) patch: Patch,
    /// The checks, each of which must notice it alone.
    pub(super) catches: Vec<Catch>,
}

/// A check that must fail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Catch {
    /// The simulation of the protocol, within this number of seeds.
    Simulation { seeds: u32, plan: String },
    /// Tests: the package, its target as cargo names it, and parts of the tests' names.
    Test {
        package: String,
        target: String,
        filters: Vec<String>,
    },
}

impl Mutant {
    /// Reads all mutants of a folder, which has a folder for each group and a file for each mutant.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or is not of the form that `CONTRIBUTING.md` describes.
    pub(crate) fn all(folder: &Path) -> Result<Vec<Self>, Failed> {
        let mut mutants = Vec::new();
        for group in entries(folder)? {
            for file in entries(&group)? {
                let failed =
                    |error: &dyn fmt::Display| Failed(format!("{}: {error}", file.display()));
                let text = fs::read_to_string(&file).map_err(|error| failed(&error))?;
                let [group, name] = [group.file_name(), file.file_stem()]
                    .map(|part| part.unwrap_or_default().to_string_lossy());
                let mutant = Self::parse(&format!("{group}/{name}"), &text);
                mutants.push(mutant.map_err(|error| failed(&error))?);
            }
        }
        Ok(mutants)
    }

    /// Reads a mutant: the mistake, the checks that catch it, and the patch.
    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let at = text.find("--- a/").ok_or("there is no patch")?;
        let at = text.find("diff --git").map_or(at, |git| git.min(at));
        let (head, patch) = text.split_at(at);
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let why = head.lines().next().unwrap_or_default();
        if why.is_empty() || why.contains(": ") {
            return Err("the first line does not say what is wrong".to_owned());
        }
        let caught = head
            .lines()
            .filter_map(|line| line.strip_prefix("Caught-by: "));
        let catches = caught.map(|catch| {
            Catch::parse(catch).ok_or_else(|| format!("neither a test nor a search: {catch}"))
        });
        let catches = catches.collect::<Result<Vec<_>, _>>()?;
        if catches.is_empty() {
            return Err("no line begins with `Caught-by: `".to_owned());
        }
        // Another mistake is seen once, when its test is written.
        if field("Shows: ").is_none() {
            return Err(
                "no line begins with `Shows: ` and names a step of the argument".to_owned(),
            );
        }
        Ok(Self {
            name: name.to_owned(),
            patch: Patch::parse(patch)?,
            catches,
        })
    }
}

impl Catch {
    /// Reads the command that must fail.
    fn parse(command: &str) -> Option<Self> {
        if let Some(search) = command.strip_prefix("redlock-sim --plan ") {
            let (plan, seeds) = search.split_once(" --seeds ")?;
            return Some(Self::Simulation {
                plan: plan.to_owned(),
                seeds: seeds.parse().ok()?,
            });
        }
        let test = command.strip_prefix("cargo test -p ")?;
        let (place, filter) = test
            .split_once(" -- ")
            .or_else(|| Some((test.strip_suffix(" --")?, "")))?;
        let (package, target) = place.split_once(' ')?;
        // Each test is run with all features; Cargo refuses to be told so twice.
        if target.contains("--all-features") {
            return None;
        }
        Some(Self::Test {
            package: package.to_owned(),
            target: target.to_owned(),
            filters: vec![filter.to_owned()],
        })
    }

    /// Returns what has to be built for the check.
    pub(super) fn build(&self) -> (&str, &str) {
        match self {
            Self::Simulation { .. } => ("redlock-sim", ""),
            Self::Test {
                package, target, ..
            } => (package, target),
        }
    }

    /// Adds another check to this one, so that one run does both; returns whether that is possible.
    fn add(&mut self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Simulation { seeds, plan },
                Self::Simulation {
                    seeds: others,
                    plan: of,
                },
            ) if plan == of => *seeds = (*seeds).max(*others),
            (
                Self::Test {
                    package,
                    target,
                    filters,
                },
                Self::Test {
                    package: of,
                    target: its,
                    filters: others,
                },
            ) if (&*package, &*target) == (of, its) => {
                for filter in others {
                    if !filters.contains(filter) {
                        filters.push(filter.clone());
                    }
                }
            }
            _ => return false,
        }
        true
    }

    /// Returns as few checks as do all of these.
    pub(super) fn together<'a>(catches: impl Iterator<Item = &'a Self>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for catch in catches {
            if !all.iter_mut().any(|other| other.add(catch)) {
                all.push(catch.clone());
            }
        }
        all
    }
}

impl fmt::Display for Catch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulation { plan, .. } => write!(f, "the simulation (plan {plan})"),
            Self::Test {
                package,
                target,
                filters,
            } => match &filters[..] {
                [filter] => write!(f, "test {filter} of {package} ({target})"),
                _ => write!(f, "{} tests of {package} ({target})", filters.len()),
            },
        }
    }
}

/// Returns the contents of a folder, in the order of the names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let failed = |error: std::io::Error| Failed(format!("{}: {error}", folder.display()));
    let entries = fs::read_dir(folder).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n";

    fn catch(head: &str) -> Result<Catch, String> {
        let mutant = Mutant::parse("group/name", &format!("{head}\n{PATCH}"));
        mutant.map(|mutant| mutant.catches[0].clone())
    }

    fn test(filter: &str) -> Catch {
        Catch::Test {
            package: "redlock-core".to_owned(),
            target: "--test paused_time".to_owned(),
            filters: vec![filter.to_owned()],
        }
    }

    fn search(seeds: u32) -> Catch {
        Catch::Simulation {
            seeds,
            plan: "ticks".to_owned(),
        }
    }

    #[test]
    fn a_mutant_says_what_is_wrong_and_what_catches_it() {
        let of = |command: &str| {
            catch(&format!(
                "A rule is broken.\n\nShows: T1.1\nCaught-by: {command}\n"
            ))
            .unwrap()
        };
        assert_eq!(
            of("cargo test -p redlock-core --test paused_time -- a::b"),
            test("a::b")
        );
        assert_eq!(
            of("cargo test -p redlock-core --test paused_time --"),
            test("")
        );
        assert_eq!(of("redlock-sim --plan ticks --seeds 20"), search(20));
    }

    #[test]
    fn a_mutant_has_as_many_checks_as_lines_that_name_one() {
        let test = "Caught-by: cargo test -p redlock-core --test paused_time -- a\n";
        let head = format!(
            "It is wrong.\n\nShows: T1.1\n{test}Caught-by: redlock-sim --plan a --seeds 1\n"
        );
        let mutant = Mutant::parse("a/b", &format!("{head}\n{PATCH}")).unwrap();
        let builds = mutant.catches.iter().map(Catch::build);
        let builds: Vec<_> = builds.collect();
        assert_eq!(
            builds,
            [("redlock-core", "--test paused_time"), ("redlock-sim", "")]
        );
    }

    #[test]
    fn checks_of_one_program_are_made_together() {
        let checks = [test("a"), search(20), test("b"), search(9), test("a")];
        let together = Catch::together(checks.iter());
        let mut tests = test("a");
        assert!(tests.add(&test("b")));
        assert_eq!(together, [tests, search(20)]);
    }

    #[test]
    fn a_mutant_without_a_reason_a_step_or_a_check_is_an_error() {
        for head in [
            "A rule is broken.\n",
            "Caught-by: redlock-sim --plan ticks --seeds 20\n",
            "A rule is broken.\n\nShows: T1.1\nCaught-by: make check\n",
            "A rule is broken.\n\nShows: T1.1\nCaught-by: cargo test -p redlock-core --all-features --lib -- a\n",
            "A rule is broken.\n\nShows: T1.1\nCaught-by: redlock-sim --plan ticks --seeds many\n",
            "A rule is broken.\n\nCaught-by: redlock-sim --plan ticks --seeds 20\n",
        ] {
            assert!(catch(head).is_err(), "{head}");
        }
    }
}
