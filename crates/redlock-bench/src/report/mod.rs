//! What was measured, beside its goals.

mod json;
mod publish;
mod table;

use self::table::Table;
use crate::{
    goals::{self, Goal},
    statistics::{Series, Summary},
};

/// The name of the client that the goals are for.
pub(crate) const OURS: &str = "ours";

/// One figure, measured several times.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    pub(crate) row: &'static str,
    /// The contender it is a figure of.
    pub(crate) contender: String,
    pub(crate) metric: String,
    /// The contender or state it is divided by; empty where it stands by itself.
    pub(crate) against: String,
    pub(crate) summary: Summary,
}

impl Measure {
    /// Finds its goal, if it has one.
    pub(crate) fn goal(&self) -> Option<&'static Goal> {
        goals::find(self.row, &self.metric, &self.against).filter(|_| self.contender == OURS)
    }

    /// Says if its goal is met, if it has one.
    pub(crate) fn is_met(&self) -> Option<bool> {
        let goal = self.goal()?;
        Some(goal.bound.holds(self.summary.median))
    }
}

/// All that was measured so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) measures: Vec<Measure>,
    /// The rows that were begun.
    pub(crate) rows: Vec<&'static str>,
    /// The programs that are measured beside ours: other trees.
    pub(crate) beside: Vec<String>,
}

impl Report {
    /// Begins a row: from now on its goals count.
    pub(crate) fn begin(&mut self, row: &'static str, title: &str) {
        eprintln!("\n{row}  {title}");
        self.rows.push(row);
    }

    /// Adds a figure.
    pub(crate) fn add(
        &mut self,
        row: &'static str,
        contender: &str,
        metric: impl Into<String>,
        against: &str,
        figures: &Series,
    ) {
        self.measures.push(Measure {
            row,
            contender: contender.to_owned(),
            metric: metric.into(),
            against: against.to_owned(),
            summary: Summary::of(figures),
        });
    }

    /// Prints all figures of a row, with the goals that some of them have.
    pub(crate) fn end(&self, row: &'static str) {
        let mut table = Table::new(["", "median", "min", "max", "goal", ""]);
        for measure in self.measures.iter().filter(|measure| measure.row == row) {
            let Summary { median, min, max } = measure.summary;
            let [median, min, max] = [median, min, max].map(number);
            let goal = measure.goal().map(|goal| goal.bound.text());
            let verdict = measure.is_met().map(verdict).unwrap_or_default();
            let name = format!(
                "{}: {}",
                measure.contender,
                goals::name(&measure.metric, &measure.against)
            );
            table.add([
                name,
                median,
                min,
                max,
                goal.unwrap_or_default(),
                verdict.to_owned(),
            ]);
        }
        for goal in goals::of_row(row).filter(|goal| self.measure_of(goal).is_none()) {
            let [name, bound] = [format!("{OURS}: {}", goal.name()), goal.bound.text()];
            let [min, max] = [String::new(), String::new()];
            table.add([
                name,
                "not measured".to_owned(),
                min,
                max,
                bound,
                verdict(false).to_owned(),
            ]);
        }
        eprintln!("\n{}", table.text());
    }

    /// Finds the goals of the rows so far that are not reached.
    pub(crate) fn missed(&self) -> Vec<&'static Goal> {
        let goals = self.rows.iter().flat_map(|row| goals::of_row(row));
        let reached = |goal: &Goal| {
            let measure = self.measure_of(goal);
            measure.is_some_and(|measure| goal.bound.holds(measure.summary.median))
        };
        goals.filter(|goal| !reached(goal)).collect()
    }

    fn measure_of(&self, goal: &Goal) -> Option<&Measure> {
        self.measures.iter().find(|measure| {
            measure.contender == OURS
                && (measure.row, &*measure.metric, &*measure.against)
                    == (goal.row, goal.metric, goal.against)
        })
    }
}

const fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

/// Writes a number with three digits that say something.
pub(crate) fn number(figure: f64) -> String {
    match figure.abs() {
        size if size >= 99.95 => format!("{figure:.0}"),
        size if size >= 9.995 => format!("{figure:.1}"),
        size if size.is_nan() => "-".to_owned(),
        _ => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(figure: f64) -> Report {
        let mut report = Report::default();
        report.begin("P1", "");
        for against in ["raw", "rslock", "redis-rs", "redlock"] {
            report.add("P1", OURS, "p50 of a pair", against, &vec![figure]);
        }
        report
    }

    #[test]
    fn a_goal_that_is_not_reached_is_missed() {
        assert!(report(0.9).missed().is_empty());
        let missed = report(1.4);
        let against: Vec<_> = missed.missed().iter().map(|goal| goal.against).collect();
        assert_eq!(against, ["rslock", "redis-rs", "redlock"]);
    }

    #[test]
    fn a_goal_is_missed_by_a_row_that_did_not_measure_it() {
        let mut report = report(0.9);
        report.begin("P2", "");
        assert!(report.missed().iter().all(|goal| goal.row == "P2"));
        assert!(!report.missed().is_empty());
    }

    #[test]
    fn a_goal_is_missed_by_what_is_no_number() {
        assert_eq!(report(f64::NAN).missed().len(), 4);
    }

    #[test]
    fn a_figure_of_another_has_no_goal() {
        let mut report = Report::default();
        report.add("P1", "rslock", "p50 of a pair", "raw", &vec![9.0]);
        assert!(report.measures[0].goal().is_none());
    }

    #[test]
    fn numbers_have_three_digits() {
        let numbers = [0.6, 12.34, 4821.4, f64::NAN].map(number);
        assert_eq!(numbers, ["0.60", "12.3", "4821", "-"]);
    }
}
