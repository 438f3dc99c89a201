//! What is measured, row by row.

mod clients;
mod delay;
mod fresh;
mod frozen;
mod growth;
mod hot;
mod leases;
mod pairs;
mod replicas;
#[cfg(feature = "seam")]
mod script;
mod sets;
mod shared;
mod slots;
mod tower;
mod uncontended;
mod waiting;

use std::time::Duration;

use crate::{
    failed::{Failed, Result},
    report::{OURS, Report, Table, number},
    site::{Contender, Program},
    statistics::{Summary, ratios},
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
    /// How often the rows are repeated that measure single operations.
    pub(crate) rounds: usize,
    /// How many leases rest.
    pub(crate) leases: u64,
    /// Their time to live.
    pub(crate) ttl: Duration,
    /// How many keys are used once.
    pub(crate) keys: u64,
    /// How many requests come for one key.
    pub(crate) requests: u32,
}

impl Scale {
    /// Whole, in twenty minutes.
    pub(crate) const WHOLE: Self = Self {
        // Many short samples: what else the machine does lasts longer than a turn of all contenders.
        repeats: 21,
        sample: Duration::from_millis(300),
        rounds: 151,
        leases: 100_000,
        ttl: Duration::from_secs(30),
        keys: 1_000_000,
        requests: 2_000,
    };

    /// In five minutes, for a first look.
    pub(crate) const QUICK: Self = Self {
        repeats: 5,
        sample: Duration::from_millis(250),
        rounds: 21,
        leases: 10_000,
        ttl: Duration::from_secs(6),
        keys: 50_000,
        requests: 200,
    };
}

/// A workload, with its goals.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Another name for it; empty if it has none.
    alias: &'static str,
    pub(crate) measure: fn(&mut Bench) -> Result<()>,
}

const fn row(
    name: &'static str,
    alias: &'static str,
    measure: fn(&mut Bench) -> Result<()>,
) -> Row {
    Row {
        name,
        alias,
        measure,
    }
}

/// All rows, in their order.
const ROWS: &[Row] = &[
    row("P1", "", uncontended::p1),
    row("P2", "", uncontended::p2),
    row("P3", "", delay::p3),
    row("P4", "", frozen::p4),
    row("P5", "", hot::p5),
    row("P6", "", hot::p6),
    row("P7", "", hot::p7),
    row("P8", "", leases::p8),
    #[cfg(feature = "seam")]
    row("P9", "script", script::p9),
    row("P10", "tower", tower::p10),
    row("P11", "", growth::p11),
    row("P12", "sets", sets::p12),
    row("P13", "slots", slots::p13),
    row("P14", "shared", shared::p14),
    #[cfg(feature = "seam")]
    row("P15", "guards", script::p15),
    row("P16", "fresh", fresh::p16),
    row("P17", "replicas", replicas::p17),
    row("P18", "waiting", waiting::p18),
];

/// Finds rows by their names; all if none is named.
pub(crate) fn named(names: &[String]) -> Result<Vec<&'static Row>> {
    let is = |row: &Row, name: &String| {
        let names = [row.name, row.alias].into_iter();
        names
            .filter(|name| !name.is_empty())
            .any(|one| name.eq_ignore_ascii_case(one))
    };
    let unknown = |name: &&String| !ROWS.iter().any(|row| is(row, name));
    if let Some(name) = names.iter().find(unknown) {
        let all: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        let all = all.join(", ");
        return Err(Failed(format!("there is no row {name}; there are: {all}")));
    }
    let wanted = |row: &&Row| names.is_empty() || names.iter().any(|name| is(row, name));
    Ok(ROWS.iter().filter(wanted).collect())
}

/// Prints and adds the figures of rounds, in microseconds, each compared with the one that it names.
fn each<const N: usize>(
    report: &mut Report,
    row: &'static str,
    lines: [(&'static str, usize); N],
    rounds: &[[f64; N]],
) {
    let mut table = Table::new(["medians; min..max of the rounds", "µs", "ratio", "min..max"]);
    let column = |index: usize| rounds.iter().map(|round| round[index]).collect::<Vec<_>>();
    for (index, (name, base)) in lines.into_iter().enumerate() {
        let micros = number(Summary::of(&column(index)).median);
        let ratios = ratios(&column(index), &column(base));
        let Summary { median, min, max } = Summary::of(&ratios);
        let range = format!("{}..{}", number(min), number(max));
        table.add([name.to_owned(), micros, number(median), range]);
        if index != base {
            report.add(row, OURS, name, lines[base].0, &ratios);
        }
    }
    eprintln!("\n{}", table.text());
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

#[cfg(all(test, feature = "seam"))]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_by_each_of_its_names() {
        let names = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            named(&names).map(|rows| rows.iter().map(|row| row.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["script", "p1"]).unwrap(), ["P1", "P9"]);
        assert_eq!(names(&[]).unwrap().len(), ROWS.len());
        assert!(names(&["P77"]).is_err());
        assert!(names(&[""]).is_err(), "no row has an empty name");
    }

    #[test]
    fn every_row_says_what_it_is_about() {
        for row in ROWS {
            assert!(!crate::goals::subject(row.name).is_empty(), "{row:?}");
        }
    }

    #[test]
    fn every_goal_is_of_a_row() {
        for goal in crate::goals::GOALS {
            assert!(ROWS.iter().any(|row| row.name == goal.row), "{goal:?}");
        }
    }
}
