//! What is measured, row by row.

mod delay;
mod frozen;
mod hot;
mod leases;
mod pairs;
mod uncontended;
mod waiting;

use std::time::Duration;

use crate::{
    failed::{Failed, Result},
    report::Report,
    site::{Contender, Program},
};

/// What a row needs.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) scale: Scale,
    /// Those that are measured: the bench itself as each of the clients, and others beside.
    pub(crate) programs: Vec<Program>,
    pub(crate) report: Report,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// How often everything is repeated.
    pub(crate) repeats: usize,
    /// How long one contender is measured in one repeat.
    pub(crate) sample: Duration,
    /// How many leases rest.
    pub(crate) leases: u64,
    /// Their time to live.
    pub(crate) ttl: Duration,
}

impl Scale {
    /// Whole.
    pub(crate) const WHOLE: Self = Self {
        // Many short samples: what else the machine does lasts longer than a turn of all contenders.
        repeats: 21,
        sample: Duration::from_millis(300),
        leases: 100_000,
        ttl: Duration::from_secs(30),
    };

    /// Fewer and shorter repeats, and fewer leases, for a first look.
    pub(crate) const QUICK: Self = Self {
        repeats: 5,
        sample: Duration::from_millis(250),
        leases: 10_000,
        ttl: Duration::from_secs(6),
    };
}

/// A workload, with its goals.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) measure: fn(&mut Bench) -> Result<()>,
}

const fn row(name: &'static str, measure: fn(&mut Bench) -> Result<()>) -> Row {
    Row { name, measure }
}

/// All rows, in their order.
const ROWS: &[Row] = &[
    row("P1", uncontended::p1),
    row("P2", uncontended::p2),
    row("P3", delay::p3),
    row("P4", frozen::p4),
    row("P5", hot::p5),
    row("P6", hot::p6),
    row("P7", hot::p7),
    row("P8", leases::p8),
    row("P18", waiting::p18),
];

/// Finds rows by their names; all if none is named.
pub(crate) fn named(names: &[String]) -> Result<Vec<&'static Row>> {
    let is = |row: &Row, name: &String| name.eq_ignore_ascii_case(row.name);
    let unknown = |name: &&String| !ROWS.iter().any(|row| is(row, name));
    if let Some(name) = names.iter().find(unknown) {
        let all: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        let all = all.join(", ");
        return Err(Failed(format!("there is no row {name}; there are: {all}")));
    }
    let wanted = |row: &&Row| names.is_empty() || names.iter().any(|name| is(row, name));
    Ok(ROWS.iter().filter(wanted).collect())
}

impl Bench {
    /// Finds the programs that are these clients, and those beside.
    fn programs(&self, clients: &[&str]) -> Vec<Program> {
        let wanted = |program: &&Program| clients.contains(&&*program.client);
        self.programs.iter().filter(wanted).cloned().collect()
    }

    /// Starts each of them.
    fn contenders(&self, clients: &[&str], nodes: &[String]) -> Result<Vec<Contender>> {
        let programs = self.programs(clients);
        let start = |program| Contender::start(program, nodes);
        programs.iter().map(start).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_by_its_name() {
        let names = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            named(&names).map(|rows| rows.iter().map(|row| row.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["p8", "p1"]).unwrap(), ["P1", "P8"]);
        assert_eq!(names(&[]).unwrap().len(), ROWS.len());
        assert!(names(&["P77"]).is_err());
        assert!(names(&[""]).is_err(), "no row has an empty name");
    }

    #[test]
    fn every_goal_is_of_a_row() {
        for goal in crate::goals::GOALS {
            assert!(ROWS.iter().any(|row| row.name == goal.row), "{goal:?}");
        }
    }
}
