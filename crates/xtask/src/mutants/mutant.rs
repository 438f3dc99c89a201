//! What a mutant is, and what must notice it.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use super::patch::Patch;
use crate::step::Failed;

/// A mistake, and what must notice it.
#[derive(Debug)]
pub(super) struct Mutant {
    /// Its group and its own name, as in `protocol/no-drift`.
    pub(super) name: String,
    pub(super) patch: Patch,
    pub(super) catch: Catch,
    /// Why nothing can notice it, if that is so.
    pub(super) harmless: Option<String>,
}

/// What must fail.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Catch {
    /// The simulation of the protocol, within so many seeds.
    Simulation { seeds: u32, plan: String },
    /// A test: the package, its target as cargo names it, and a part of the test's name.
    Test {
        package: String,
        target: String,
        filter: String,
    },
}

impl Mutant {
    /// Reads all mutants of a folder, which has a folder for each group and a file for each mutant.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or is not of the form that `CONTRIBUTING.md` describes.
    pub(super) fn all(folder: &Path) -> Result<Vec<Self>, Failed> {
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

    /// Reads a mutant: what is wrong with it, what catches it, and the patch.
    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let at = text.find("--- a/").ok_or("there is no patch")?;
        let at = text.find("diff --git").map_or(at, |git| git.min(at));
        let (head, patch) = text.split_at(at);
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let why = head.lines().next().unwrap_or_default();
        if why.is_empty() || why.contains(": ") {
            return Err("the first line does not say what is wrong".to_owned());
        }
        let catch = field("Caught-by: ").ok_or("no line begins with `Caught-by: `")?;
        Ok(Self {
            name: name.to_owned(),
            patch: Patch::parse(patch)?,
            catch: Catch::parse(catch)
                .ok_or_else(|| format!("neither a test nor a search: {catch}"))?,
            harmless: field("Harmless: ").map(str::to_owned),
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
        Some(Self::Test {
            package: package.to_owned(),
            target: target.to_owned(),
            filter: filter.to_owned(),
        })
    }
}

impl fmt::Display for Catch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulation { plan, .. } => write!(f, "the simulation (plan {plan})"),
            Self::Test {
                package,
                target,
                filter,
            } => write!(f, "test {filter} of {package} ({target})"),
        }
    }
}

/// What is in a folder, in the order of the names.
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
        Mutant::parse("group/name", &format!("{head}\n{PATCH}")).map(|mutant| mutant.catch)
    }

    #[test]
    fn a_mutant_says_what_is_wrong_and_what_catches_it() {
        let test = |filter: &str| Catch::Test {
            package: "redlock-core".to_owned(),
            target: "--test paused_time".to_owned(),
            filter: filter.to_owned(),
        };
        let of =
            |command: &str| catch(&format!("A rule is broken.\n\nCaught-by: {command}\n")).unwrap();
        assert_eq!(
            of("cargo test -p redlock-core --test paused_time -- a::b"),
            test("a::b")
        );
        assert_eq!(
            of("cargo test -p redlock-core --test paused_time --"),
            test("")
        );
        let search = Catch::Simulation {
            seeds: 20,
            plan: "ticks".to_owned(),
        };
        assert_eq!(of("redlock-sim --plan ticks --seeds 20"), search);
    }

    #[test]
    fn what_nothing_can_notice_has_its_reason() {
        let head = "It does no harm.\n\nCaught-by: redlock-sim --plan a --seeds 1\nHarmless: it is 0 anyway\n";
        let mutant = Mutant::parse("a/b", &format!("{head}\n{PATCH}")).unwrap();
        assert_eq!(mutant.harmless.as_deref(), Some("it is 0 anyway"));
    }

    #[test]
    fn a_mutant_without_a_reason_or_a_check_is_an_error() {
        for head in [
            "A rule is broken.\n",
            "Caught-by: redlock-sim --plan ticks --seeds 20\n",
            "A rule is broken.\n\nCaught-by: make check\n",
            "A rule is broken.\n\nCaught-by: redlock-sim --plan ticks --seeds many\n",
        ] {
            assert!(catch(head).is_err(), "{head}");
        }
    }
}
