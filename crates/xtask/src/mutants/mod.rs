//! `cargo xtask mutants`: the checks are checked.
//!
//! Each [`Mutant`] is a mistake that some released lock has or had.
//! The command puts it into a copy of the sources; each check that the mutant names must then fail, and must pass without
//! the mutant.

mod model;
mod mutant;
mod patch;
mod table;
mod tree;

use std::{collections::BTreeSet, path::PathBuf};

pub(crate) use self::mutant::Mutant;
use self::{
    model::{MODEL, Mutation},
    mutant::Catch,
    table::Table,
    tree::Tree,
};
use crate::step::{Failed, now, root};

/// The folder of the mutants: in it a folder for each group, and in that a patch for each mutant.
pub(crate) fn folder() -> PathBuf {
    root().join("crates/xtask/mutants")
}

/// Puts in every mutant that has one of `names` in its name or in the path of a file that it changes, or all of them, and
/// prints what caught it.
///
/// The checks of one program follow each other, and of these the ones whose mutants change the same file: so cargo builds
/// the fewest crates again.
pub(crate) fn run(names: &[String]) -> Result<(), Failed> {
    let wanted = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part));
    let mut mutants = Mutant::all(&folder())?;
    mutants.retain(|mutant| {
        let mut paths = mutant.patch.files.iter().map(|file| &file.path);
        wanted(&mutant.name) || paths.any(|path| wanted(path))
    });
    let named = |mutation: &'static Mutation| (format!("model/{}", mutation.name), mutation);
    let model = MODEL.iter().map(named).filter(|(name, _)| wanted(name));
    let model: Vec<(String, &Mutation)> = model.collect();
    if mutants.is_empty() && model.is_empty() {
        return Err(Failed("no mutant has such a name".to_owned()));
    }
    let started = now();
    let tree = Tree::copy()?;
    for mutant in &mutants {
        tree.expect_fit(mutant)?;
    }
    let trials = mutants.iter().flat_map(|mutant| {
        let catches = mutant.catches.iter();
        catches.map(move |catch| (mutant, catch))
    });
    let mut trials: Vec<(&Mutant, &Catch)> = trials.collect();
    trials.sort_by_key(|(mutant, catch)| (catch.build(), &mutant.patch.files[0].path));
    // What fails without a mutant proves nothing.
    for catch in Catch::together(trials.iter().map(|(_, catch)| *catch)) {
        eprintln!("without any mutant: {catch}");
        tree.run(&catch)?.expect_passed(&catch)?;
    }
    let mut baseline = BTreeSet::new();
    for (_, mutation) in &model {
        let what = format!("the model with {}", mutation.world);
        if baseline.insert(what.clone()) {
            eprintln!("without any mutant: {what}");
            tree.explore(mutation.world, None)?.expect_passed(&what)?;
        }
    }
    let mut table = Table::default();
    for (mutant, catch) in trials {
        let began = now();
        let outcome = tree.with(mutant, || tree.run(catch))?;
        tree.keep(&mutant.name, &outcome)?;
        table.add(&mutant.name, outcome, None, began.elapsed());
    }
    for (name, mutation) in model {
        let began = now();
        let outcome = tree.explore(mutation.world, Some(mutation.name))?;
        tree.keep(&name, &outcome)?;
        table.add(&name, outcome, mutation.harmless, began.elapsed());
    }
    eprintln!("\nthe output of each check is in {}", tree.said().display());
    table.verdict(started.elapsed())
}

#[cfg(test)]
mod tests {
    use super::{patch::Sources, *};

    #[test]
    fn every_mutant_fits_its_files() {
        let mut unfit = Vec::new();
        let mutants = Mutant::all(&folder()).unwrap();
        assert!(mutants.len() > 200, "{}", mutants.len());
        let sources = tree::texts(&root()).unwrap();
        for mutant in mutants {
            for file in &mutant.patch.files {
                match file.apply_to(&sources) {
                    Ok((_, source, mutated)) => assert_ne!(mutated, source, "{}", mutant.name),
                    Err(error) => unfit.push(format!("{}: {error}", mutant.name)),
                }
            }
        }
        assert!(unfit.is_empty(), "{}", unfit.join("\n"));
    }

    /// A check whose test was renamed or moved detects nothing.
    #[test]
    fn every_check_names_a_test_that_there_is() {
        let sources = tree::texts(&root()).unwrap();
        let mut missing = Vec::new();
        for mutant in Mutant::all(&folder()).unwrap() {
            for catch in &mutant.catches {
                if !has_test(&sources, catch) {
                    missing.push(format!("{}: {catch}", mutant.name));
                }
            }
        }
        assert!(missing.is_empty(), "no such test:\n{}", missing.join("\n"));
    }

    /// Returns whether the package has the program that the check runs, and each part of the test's path.
    fn has_test(sources: &Sources, catch: &Catch) -> bool {
        let Catch::Test {
            package,
            target,
            filters,
        } = catch
        else {
            return true;
        };
        let name = format!("name = \"{package}\"");
        let folders = sources.iter().filter_map(|(path, text)| {
            let is_its = text.lines().any(|line| line == name);
            path.strip_suffix("Cargo.toml").filter(|_| is_its)
        });
        let folders: Vec<&str> = folders.collect();
        let [folder] = folders[..] else {
            return false;
        };
        let files = sources.iter().filter(|(path, _)| path.starts_with(folder));
        let mut words = target.split(' ').skip_while(|word| *word != "--test");
        let has_program = words.nth(1).is_none_or(|program| {
            let paths = ["", "/main"].map(|end| format!("{folder}tests/{program}{end}.rs"));
            paths.iter().any(|path| sources.contains_key(path))
        });
        let mut parts = filters.iter().flat_map(|filter| filter.split("::"));
        let has = |part| {
            files
                .clone()
                .any(|(path, text)| path.contains(part) || text.contains(part))
        };
        has_program && parts.all(has)
    }
}
