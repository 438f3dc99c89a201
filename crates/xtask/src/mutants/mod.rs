//! `cargo xtask mutants`: the checks are checked.
//!
//! Each [`Mutant`] is a mistake that some released lock has or had.
//! It is put into a copy of the sources, and what it says should catch it must fail, after it was seen to pass
//! without it.

mod edit;
mod list;
mod script;
mod servers;
mod tree;

use std::{collections::BTreeSet, time::Duration};

use self::{
    list::{Catch, MODEL, MUTANTS, Mutant},
    script::SCRIPT,
    servers::SERVERS,
    tree::{Outcome, Tree},
};
use crate::step::{Failed, now};

/// Puts in every mutant whose name contains one of `names`, or all of them, and prints what caught it.
pub(crate) fn run(names: &[String]) -> Result<(), Failed> {
    let wanted = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part));
    let all = MUTANTS.iter().chain(SCRIPT).chain(SERVERS);
    let mutants: Vec<&Mutant> = all.filter(|m| wanted(m.name)).collect();
    let model: Vec<&str> = MODEL.iter().copied().filter(|name| wanted(name)).collect();
    if mutants.is_empty() && model.is_empty() {
        return Err(Failed("no mutant has such a name".to_owned()));
    }
    let tree = Tree::copy()?;
    let mut rows = Rows::default();
    // What fails without a mutant proves nothing.
    let mut baseline = BTreeSet::new();
    for mutant in &mutants {
        let catch = mutant.catch;
        if baseline.insert(catch.to_string()) && !matches!(tree.run(&catch)?, Outcome::Passed) {
            return Err(Failed(format!("without any mutant, {catch} does not pass")));
        }
    }
    for mutant in &mutants {
        let started = now();
        let outcome = tree.with(mutant, || tree.run(&mutant.catch))?;
        rows.add(mutant.name, &mutant.catch, &outcome, started.elapsed());
    }
    for name in model {
        let started = now();
        let catch = Catch::Model(name);
        let outcome = tree.run(&catch)?;
        rows.add(name, &catch, &outcome, started.elapsed());
    }
    rows.verdict()
}

/// The table, printed line by line as it grows.
#[derive(Debug, Default)]
struct Rows {
    count: usize,
    survived: Vec<String>,
}

impl Rows {
    fn add(&mut self, name: &str, catch: &Catch, outcome: &Outcome, took: Duration) {
        if self.count == 0 {
            eprintln!(
                "\n{:44} {:52} {:>9} {:>7}",
                "mutant", "caught by", "needed", "took"
            );
        }
        self.count += 1;
        let (by, needed) = match outcome {
            Outcome::Caught { by, needed } => (by.as_str(), needed.as_str()),
            Outcome::Passed => {
                self.survived.push(name.to_owned());
                ("NOTHING", "")
            }
            Outcome::Broken => {
                self.survived.push(name.to_owned());
                ("it does not compile", "")
            }
        };
        let by = match catch {
            Catch::Simulation { .. } if matches!(outcome, Outcome::Caught { .. }) => {
                format!("simulation: {by}")
            }
            Catch::Model(_) if matches!(outcome, Outcome::Caught { .. }) => format!("model: {by}"),
            _ => by.to_owned(),
        };
        eprintln!("{name:44} {by:52} {needed:>9} {:>5} s", took.as_secs());
    }

    fn verdict(&self) -> Result<(), Failed> {
        if self.survived.is_empty() {
            eprintln!(
                "\nmutants: ok: {} put in, {} caught",
                self.count, self.count
            );
            return Ok(());
        }
        Err(Failed(format!(
            "mutants: {} of {} were not caught: {}",
            self.survived.len(),
            self.count,
            self.survived.join(", ")
        )))
    }
}
