//! `cargo xtask mutants`: the checks are checked.
//!
//! Each [`Mutant`] is a mistake that some released lock has or had.
//! It is put into a copy of the sources, and what it says should catch it must fail, after it was seen to pass
//! without it.

mod model;
mod mutant;
mod patch;
mod table;
mod tree;

use std::{collections::BTreeSet, path::PathBuf};

use self::{
    model::{MODEL, Mutation},
    mutant::Mutant,
    table::Table,
    tree::Tree,
};
use crate::step::{Failed, now, root};

/// The folder of the mutants: in it a folder for each group, and in that a patch for each mutant.
fn folder() -> PathBuf {
    root().join("crates/xtask/mutants")
}

/// Puts in every mutant whose name contains one of `names`, or all of them, and prints what caught it.
pub(crate) fn run(names: &[String]) -> Result<(), Failed> {
    let wanted = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part));
    let mut mutants = Mutant::all(&folder())?;
    mutants.retain(|mutant| wanted(&mutant.name));
    let named = |mutation: &'static Mutation| (format!("model/{}", mutation.name), mutation);
    let model = MODEL.iter().map(named).filter(|(name, _)| wanted(name));
    let model: Vec<(String, &Mutation)> = model.collect();
    if mutants.is_empty() && model.is_empty() {
        return Err(Failed("no mutant has such a name".to_owned()));
    }
    let tree = Tree::copy()?;
    for mutant in &mutants {
        tree.expect_fit(mutant)?;
    }
    // What fails without a mutant proves nothing.
    let mut baseline = BTreeSet::new();
    for mutant in &mutants {
        let catch = &mutant.catch;
        if baseline.insert(catch.to_string()) {
            eprintln!("without any mutant: {catch}");
            tree.run(catch)?.expect_passed(catch)?;
        }
    }
    for (_, mutation) in &model {
        let what = format!("the model with {}", mutation.world);
        if baseline.insert(what.clone()) {
            eprintln!("without any mutant: {what}");
            tree.explore(mutation.world, None)?.expect_passed(&what)?;
        }
    }
    let mut table = Table::default();
    for mutant in &mutants {
        let started = now();
        let outcome = tree.with(mutant, || tree.run(&mutant.catch))?;
        tree.keep(&mutant.name, &outcome)?;
        let harmless = mutant.harmless.as_deref();
        table.add(&mutant.name, outcome, harmless, started.elapsed());
    }
    for (name, mutation) in model {
        let started = now();
        let outcome = tree.explore(mutation.world, Some(mutation.name))?;
        tree.keep(&name, &outcome)?;
        table.add(&name, outcome, mutation.harmless, started.elapsed());
    }
    eprintln!("\nwhat each said is in {}", tree.said().display());
    table.verdict()
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
