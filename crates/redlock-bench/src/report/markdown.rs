//! The goals as a table for a document.

use std::fmt::Write;

use super::{Report, number};
use crate::{
    goals::{self, Bound, Goal},
    statistics::Summary,
};

impl Report {
    /// Writes a line for each goal of the rows that were run.
    pub(crate) fn markdown(&self) -> String {
        let mut table =
            "| row | figure | median (min..max) | goal | |\n|---|---|---|---|---|\n".to_owned();
        for row in &self.rows {
            for goal in goals::of_row(row) {
                let summary = self.measure_of(goal).map(|measure| measure.summary);
                let (figures, verdict) = summary.map_or_else(
                    || ("not measured".to_owned(), "missed".to_owned()),
                    |Summary { median, min, max }| {
                        let [middle, min, max] = [median, min, max].map(number);
                        let figures = format!("{middle} ({min}..{max})");
                        (figures, verdict(goal, median))
                    },
                );
                let (name, bound) = (goal.name(), goal.bound.text());
                // Writing to memory does not fail.
                let _ = writeln!(
                    table,
                    "| {row} | {name} | {figures} | {bound} | {verdict} |"
                );
            }
        }
        table
    }
}

/// Says by how much a goal is missed, if it is.
fn verdict(goal: &Goal, figure: f64) -> String {
    if goal.bound.holds(figure) {
        return "met".to_owned();
    }
    let by = match goal.bound {
        Bound::AtMost(most) => figure / most - 1.0,
        Bound::AtLeast(least) => 1.0 - figure / least,
    };
    match 100.0 * by {
        percent if percent.is_nan() => "missed".to_owned(),
        percent if percent < 9.95 => format!("**missed** by {percent:.1} %"),
        percent if percent < 99.5 => format!("**missed** by {percent:.0} %"),
        percent => {
            let times = number(percent / 100.0 + 1.0);
            format!("**missed**: {times} times the goal")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    use super::*;
    use crate::{
        goals::GOALS,
        report::{Measure, OURS},
    };

    fn documents() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
    }

    /// Reads the results that the documents tell of.
    fn published() -> Report {
        let text = fs::read_to_string(documents().join("results.json")).unwrap();
        Report::of_json(&text).unwrap()
    }

    #[test]
    fn a_miss_says_by_how_much() {
        let said = |metric: &str, against: &str, figure: f64| {
            let goal = goals::find("P2", metric, against).unwrap();
            verdict(goal, figure)
        };
        assert_eq!(said("pairs/s, 64 tasks", "raw", 0.7), "met");
        assert_eq!(said("pairs/s, 64 tasks", "raw", 0.3), "**missed** by 45 %");
        assert_eq!(
            said("pairs/s, 64 tasks", "rslock", 1.78),
            "**missed** by 1.1 %"
        );
        assert_eq!(said("pairs/s, 64 tasks", "raw", f64::NAN), "missed");
        let cpu = "CPU of nodes per pair, 64 tasks";
        assert_eq!(said(cpu, "raw", 3.25), "**missed**: 2.50 times the goal");
    }

    #[test]
    fn a_goal_without_a_figure_is_in_the_table() {
        let mut report = Report::default();
        report.begin("P1", "");
        report.add("P1", OURS, "p50 of a pair", "raw", &vec![1.0, 1.2, 1.4]);
        let table = report.markdown();
        assert!(
            table.contains("| P1 | p50 of a pair, × raw | 1.20 (1.00..1.40) | ≤ 1.5 | met |\n"),
            "{table}"
        );
        assert!(
            table.contains("| P1 | p50 of a pair, × rslock | not measured | ≤ 1 | missed |\n"),
            "{table}"
        );
    }

    #[test]
    fn the_document_has_each_goal_with_its_published_figure() {
        let (report, document) = (published(), documents().join("performance.md"));
        let document = fs::read_to_string(document).unwrap();
        let table = report.markdown();
        let goals = table.lines().count() - 2;
        assert_eq!(goals, GOALS.len(), "a row with goals was not run");
        let missing: Vec<_> = table
            .lines()
            .filter(|line| !document.contains(line))
            .collect();
        assert!(
            document.contains(&table),
            "docs/performance.md is not what --goals prints, such as: {missing:#?}"
        );
    }

    #[test]
    fn the_sentences_and_tables_of_the_documents_have_the_published_figures() {
        let report = published();
        let median = |row: &str, metric: &str, against: &str| {
            let is_it = |one: &&Measure| {
                let of = (one.row, &*one.metric, &*one.against);
                one.contender == OURS && of == (row, metric, against)
            };
            let measure = report.measures.iter().find(is_it);
            measure.map_or(f64::NAN, |measure| measure.summary.median)
        };
        let beside = |row: &str, metric: &str, peers: &[&str]| {
            let cells = peers.iter();
            let cells = cells.map(|peer| format!("{} | ", number(median(row, metric, peer))));
            cells.collect::<String>()
        };
        let peers = ["raw", "redis-rs", "rslock", "redlock"];
        let mut wanted = vec![format!(
            "| time of a pair, one task; less is better | {}",
            beside("P1", "p50 of a pair", &peers)
        )];
        for tasks in ["64 tasks", "256 tasks"] {
            let cells = beside("P2", &format!("pairs/s, {tasks}"), &peers[..3]);
            wanted.push(format!(
                "| pairs per second, {tasks}; more is better | {cells}"
            ));
        }
        let document = fs::read_to_string(documents().join("performance.md")).unwrap();
        for line in wanted {
            assert!(document.contains(line.trim_end()), "{line}");
        }
        let readme = fs::read_to_string(documents().join("../README.md")).unwrap();
        for (what, row, metric) in [
            ("pairs per second, 64 tasks", "P2", "pairs/s, 64 tasks"),
            ("pairs per second, 256 tasks", "P2", "pairs/s, 256 tasks"),
            (
                "time of a pair, one task (less is better)",
                "P1",
                "p50 of a pair",
            ),
        ] {
            let of = |peer| median(row, metric, peer);
            let (rslock, redis_rs) = (of("rslock"), of("redis-rs"));
            let line = format!("| {what} | {rslock:.1} | {redis_rs:.1} |");
            assert!(readme.contains(&line), "{line}");
        }
    }
}
