//! `cargo xtask mutants`: the checks are checked.
//!
//! Each [`Mutant`] is a mistake that some released lock has or had.
//! It is put into a copy of the sources, and what it says should catch it must fail, after it was seen to pass
//! without it.

mod backlog;
mod claims;
mod clocks;
mod edit;
mod examples;
mod fleet;
mod guard;
mod hand_over;
mod jobs;
mod link;
mod model;
mod mutant;
mod operation;
mod protocol;
mod requests;
mod script;
mod servers;
mod table;
mod ticks;
mod tree;
mod worlds;

use std::collections::BTreeSet;

use self::{
    backlog::BACKLOG,
    claims::CLAIMS,
    clocks::CLOCKS,
    examples::EXAMPLES,
    fleet::FLEET,
    guard::GUARD,
    hand_over::HAND_OVER,
    jobs::JOBS,
    link::LINK,
    model::{MODEL, Mutation},
    mutant::Mutant,
    operation::OPERATION,
    protocol::PROTOCOL,
    requests::REQUESTS,
    script::SCRIPT,
    servers::SERVERS,
    table::Table,
    ticks::TICKS,
    tree::Tree,
    worlds::WORLDS,
};
use crate::step::{Failed, now};

/// The mutants by what is wrong, in the order in which they are put in.
const GROUPS: &[(&str, &[Mutant])] = &[
    ("protocol", PROTOCOL),
    ("guard", GUARD),
    ("claims", CLAIMS),
    ("worlds", WORLDS),
    ("ticks", TICKS),
    ("jobs", JOBS),
    ("backlog", BACKLOG),
    ("clocks", CLOCKS),
    ("fleet", FLEET),
    ("hand-over", HAND_OVER),
    ("link", LINK),
    ("requests", REQUESTS),
    ("script", SCRIPT),
    ("servers", SERVERS),
    ("operation", OPERATION),
    ("examples", EXAMPLES),
];

/// Puts in every mutant whose name contains one of `names`, or all of them, and prints what caught it.
pub(crate) fn run(names: &[String]) -> Result<(), Failed> {
    let wanted = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part));
    let all = GROUPS.iter().flat_map(|(group, mutants)| {
        let named = move |mutant: &'static Mutant| (format!("{group}/{}", mutant.name), mutant);
        mutants.iter().map(named)
    });
    let mutants: Vec<(String, &Mutant)> = all.filter(|(name, _)| wanted(name)).collect();
    let named = |mutation: &'static Mutation| (format!("model/{}", mutation.name), mutation);
    let model = MODEL.iter().map(named).filter(|(name, _)| wanted(name));
    let model: Vec<(String, &Mutation)> = model.collect();
    if mutants.is_empty() && model.is_empty() {
        return Err(Failed("no mutant has such a name".to_owned()));
    }
    let tree = Tree::copy()?;
    for (_, mutant) in &mutants {
        tree.expect_fit(mutant)?;
    }
    // What fails without a mutant proves nothing.
    let mut baseline = BTreeSet::new();
    for (_, mutant) in &mutants {
        let catch = mutant.catch;
        if baseline.insert(catch.to_string()) {
            eprintln!("without any mutant: {catch}");
            tree.run(&catch)?.expect_passed(catch)?;
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
    for (name, mutant) in &mutants {
        let started = now();
        let outcome = tree.with(mutant, || tree.run(&mutant.catch))?;
        tree.keep(name, &outcome)?;
        table.add(name, outcome, None, started.elapsed());
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
    use crate::{mutants::edit::replaced, step::root};

    #[test]
    fn every_mutant_fits_its_file() {
        let mut unfit = Vec::new();
        for mutant in GROUPS.iter().flat_map(|(_, mutants)| *mutants) {
            let source = std::fs::read_to_string(root().join(mutant.file)).unwrap();
            match replaced(&source, mutant.from, mutant.to, mutant.name) {
                Ok(mutated) => assert_ne!(mutated, source, "{}", mutant.name),
                Err(failed) => unfit.push(format!("{failed:?}")),
            }
        }
        assert!(unfit.is_empty(), "{}", unfit.join("\n"));
    }

    #[test]
    fn no_two_mutants_of_a_group_have_one_name() {
        for (group, mutants) in GROUPS {
            let names: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.name).collect();
            assert_eq!(names.len(), mutants.len(), "{group}");
        }
    }
}
