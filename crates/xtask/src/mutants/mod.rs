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

use self::{
    model::{MODEL, Mutation},
    mutant::{Catch, Mutant},
    table::Table,
    tree::Tree,
};
use crate::step::{Failed, now, root};

/// The folder of the mutants: in it a folder for each group, and in that a patch for each mutant.
fn folder() -> PathBuf {
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
        let harmless = mutant.harmless.as_deref();
        table.add(&mutant.name, outcome, harmless, began.elapsed());
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
    use super::*;

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
}
