//! `cargo xtask evidence`: which test and which mutant shows each step of the safety argument.
//!
//! A step is declared in `docs/safety.md`, `docs/refinements.md` or `docs/named.md`: as an item of a list (`- T1.3. …`), a row of a table
//! (`| E1 | …`) or a heading (`### A1. …`).
//! A test, a violation or a broken rule shows it by a comment above (`// Shows: T1.3, L1.2.`), a mutant by a line in its head
//! (`Shows: T1.3`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::step::{Failed, root};

/// The documents that declare steps.
const DOCUMENTS: [&str; 3] = ["docs/safety.md", "docs/refinements.md", "docs/named.md"];

/// A step of the argument, with the names of what shows it.
#[derive(Debug, Default)]
struct Step {
    text: String,
    tests: Vec<String>,
    mutants: Vec<String>,
    others: Vec<String>,
}

/// The steps of the argument, by number, and what is wrong with them.
#[derive(Debug, Default)]
struct Evidence {
    /// In the order of the documents.
    order: Vec<String>,
    steps: BTreeMap<String, Step>,
    wrong: Vec<String>,
}

/// Prints the evidence for each step.
///
/// # Errors
///
/// Nothing shows a step that follows from no other step, or evidence names a step that is not declared.
pub(crate) fn run() -> Result<(), Failed> {
    let evidence = Evidence::collect(&root())?;
    eprint!("{}", evidence.table());
    evidence.verdict()
}

impl Evidence {
    fn collect(root: &Path) -> Result<Self, Failed> {
        let mut evidence = Self::default();
        for document in DOCUMENTS {
            evidence.declare(&read(&root.join(document))?);
        }
        let mut files = Vec::new();
        for folder in ["crates", "tests", "examples"] {
            sources(&root.join(folder), &mut files)?;
        }
        for file in files {
            let text = read(&file)?;
            if file.extension().is_some_and(|end| end == "patch") {
                let name = file.with_extension("");
                let mut parts = name.components().rev();
                let mut part = || parts.next().map(|part| part.as_os_str().to_string_lossy());
                if let Some((name, group)) = part().zip(part()) {
                    evidence.read_mutant(&format!("{group}/{name}"), &text);
                }
            } else {
                evidence.read_source(&text, &file);
            }
        }
        Ok(evidence)
    }

    /// Notes the steps that a document declares.
    fn declare(&mut self, document: &str) {
        for line in document.lines() {
            let Some(number) = declared(line) else {
                continue;
            };
            let step = Step {
                text: line.to_owned(),
                ..Step::default()
            };
            if self.steps.insert(number.to_owned(), step).is_some() {
                self.wrong.push(format!("{number} is declared twice"));
            }
            self.order.push(number.to_owned());
        }
    }

    /// Notes what a source says it shows: each such comment is about the next item.
    fn read_source(&mut self, text: &str, file: &Path) {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(numbers) = line.trim().strip_prefix("// Shows: ") else {
                continue;
            };
            let item = lines.clone().map(str::trim).find_map(item);
            let Some((name, is_test)) = item else {
                let file = file.display();
                self.wrong.push(format!("{file}: nothing follows `{line}`"));
                continue;
            };
            self.show(numbers, name, |step| {
                if is_test {
                    &mut step.tests
                } else {
                    &mut step.others
                }
            });
        }
    }

    /// Notes what a mutant says it shows.
    fn read_mutant(&mut self, name: &str, text: &str) {
        let mut head = text.lines().take_while(|line| !line.starts_with("--- "));
        if let Some(numbers) = head.find_map(|line| line.strip_prefix("Shows: ")) {
            self.show(numbers, name, |step| &mut step.mutants);
        }
    }

    fn show(&mut self, numbers: &str, name: &str, kind: impl Fn(&mut Step) -> &mut Vec<String>) {
        for number in numbers.trim_end_matches('.').split(", ") {
            match self.steps.get_mut(number) {
                Some(step) => kind(step).push(name.to_owned()),
                None => self
                    .wrong
                    .push(format!("{name} shows {number}, which no document declares")),
            }
        }
    }

    /// Returns a row for each step, in the order of the documents.
    fn table(&self) -> String {
        let mut table =
            "| step | tests | mutants | rules and violations |\n|---|---|---|---|\n".to_owned();
        for number in &self.order {
            let step = &self.steps[number];
            let cell = |names: &[String]| names.join(", ");
            table += &format!(
                "| {number} | {} | {} | {} |\n",
                cell(&step.tests),
                cell(&step.mutants),
                cell(&step.others)
            );
        }
        table
    }

    /// Returns an error if nothing shows a step, unless the step says from which others it follows.
    fn verdict(mut self) -> Result<(), Failed> {
        for (number, step) in &self.steps {
            let is_shown =
                !(step.tests.is_empty() && step.mutants.is_empty() && step.others.is_empty());
            if !is_shown && !follows(number, &step.text, &self.steps) {
                self.wrong.push(format!(
                    "{number} has no test, and follows from no other step"
                ));
            }
        }
        if self.wrong.is_empty() {
            return Ok(());
        }
        Err(Failed(self.wrong.join("\n")))
    }
}

/// Returns the number of the step that a line of a document declares.
fn declared(line: &str) -> Option<&str> {
    let (rest, end) = if let Some(rest) = line.strip_prefix("- ") {
        (rest, ". ")
    } else if let Some(rest) = line.strip_prefix("| ") {
        (rest, " | ")
    } else {
        (line.trim_start_matches('#').strip_prefix(' ')?, ". ")
    };
    let (number, _) = rest.split_once(end)?;
    is_number(number, line.starts_with('#')).then_some(number)
}

/// Returns whether a word is the number of a step; of headings, only those of assumptions are.
fn is_number(word: &str, is_heading: bool) -> bool {
    let digits = word.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
    let letters = &word[..word.len() - digits.len()];
    let is_digits = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    letters.len() == 1
        && digits.split('.').count() <= 2
        && digits.split('.').all(is_digits)
        && (!is_heading || letters == "A")
}

/// Returns whether the text of a step names another step, or a whole theorem or lemma.
fn follows(number: &str, text: &str, steps: &BTreeMap<String, Step>) -> bool {
    let known: BTreeSet<&str> = steps
        .keys()
        .flat_map(|number| {
            [
                number.as_str(),
                number.split('.').next().unwrap_or_default(),
            ]
        })
        .collect();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words
        .map(|word| word.trim_end_matches('.'))
        .any(|word| word != number && known.contains(word))
}

/// Returns the name of the item that a line begins, and whether it is a test; `None` if it begins none.
fn item(line: &str) -> Option<(&str, bool)> {
    if line.is_empty() || line.starts_with("//") || line.starts_with('#') {
        return None;
    }
    let end = |c: char| !c.is_alphanumeric() && c != '_';
    if let Some((_, rest)) = line.split_once("fn ") {
        return rest.split(end).next().map(|name| (name, true));
    }
    // A broken rule of the model has a text as its name, a violation its variant's.
    if let Some((_, rest)) = line.split_once("=> \"") {
        return rest.split('"').next().map(|name| (name, false));
    }
    line.split(end).next().map(|name| (name, false))
}

/// Collects the sources and the patches below a folder, in the order of their names.
fn sources(folder: &Path, all: &mut Vec<PathBuf>) -> Result<(), Failed> {
    let failed = |error: std::io::Error| Failed(format!("{}: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, all)?;
        } else if path
            .extension()
            .is_some_and(|end| end == "rs" || end == "patch")
        {
            all.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, Failed> {
    fs::read_to_string(path).map_err(|error| Failed(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
### A1. Rates
## T1. Exclusion
- T1.1. It begins.
- T1.2. So it ends (T1.1).
| E1 | a restart | another run |
- N1. **Others.** They do.
";

    fn evidence(source: &str) -> Evidence {
        let mut evidence = Evidence::default();
        evidence.declare(DOCUMENT);
        evidence.read_source(source, Path::new("a.rs"));
        evidence
    }

    const ALL: &str = "// Shows: A1, T1.1, E1, N1.\n#[test]\nfn all_of_it() {}\n";

    #[test]
    fn every_step_has_a_test_or_names_the_steps_that_it_follows_from() {
        let evidence = Evidence::collect(&root()).unwrap();
        assert!(evidence.order.len() > 100, "{}", evidence.order.len());
        let named = |kind: fn(&Step) -> usize| evidence.steps.values().map(kind).sum::<usize>();
        let (tests, mutants) = (
            named(|step| step.tests.len()),
            named(|step| step.mutants.len()),
        );
        assert!(
            tests > 300 && mutants > 250,
            "{tests} tests, {mutants} mutants"
        );
        evidence.verdict().unwrap();
    }

    #[test]
    fn steps_are_declared_in_lists_tables_and_headings_of_assumptions() {
        let evidence = evidence(ALL);
        assert_eq!(evidence.order, ["A1", "T1.1", "T1.2", "E1", "N1"]);
        assert_eq!(evidence.steps["E1"].tests, ["all_of_it"]);
        evidence.verdict().unwrap();
    }

    #[test]
    fn a_step_without_a_test_and_a_step_that_is_not_declared_are_found() {
        let Failed(wrong) = evidence("// Shows: T1.1, T9.1\nfn one() {}\n")
            .verdict()
            .unwrap_err();
        for part in [
            "one shows T9.1",
            "A1 has no test",
            "E1 has no test",
            "N1 has no test",
        ] {
            assert!(wrong.contains(part), "{part}: {wrong}");
        }
        assert!(!wrong.contains("T1.2"), "{wrong}");
    }

    #[test]
    fn a_mutant_a_violation_and_a_broken_rule_are_no_tests() {
        let mut evidence = evidence(
            "// Shows: T1.1.\n/// Two at once.\nOverlap {\n// Shows: E1.\nSelf::NoFloor => \"no-floor\",\n",
        );
        evidence.read_mutant(
            "protocol/no-drift",
            "Why\n\nShows: N1\n\n--- a/a.rs\n+++ b/a.rs\n",
        );
        assert_eq!(evidence.steps["T1.1"].others, ["Overlap"]);
        assert_eq!(evidence.steps["E1"].others, ["no-floor"]);
        assert_eq!(evidence.steps["N1"].mutants, ["protocol/no-drift"]);
        let Failed(wrong) = evidence.verdict().unwrap_err();
        assert_eq!(wrong, "A1 has no test, and follows from no other step");
    }
}
