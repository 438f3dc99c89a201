//! Figures of many rounds, and what they are compared with.

use std::fmt::Write;

use crate::step::Failed;

/// A table of figures that were measured side by side, round by round.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Row>,
}

/// One line of the table.
#[derive(Debug)]
struct Row {
    name: &'static str,
    /// The row that it is compared with.
    base: usize,
    /// The greatest ratio to it that is good enough.
    goal: Option<f64>,
    /// In microseconds, one for each round.
    micros: Vec<f64>,
}

impl Table {
    /// A table with these rows: a name, the row to compare it with, and the ratio to reach.
    pub(super) fn new<const N: usize>(rows: [(&'static str, usize, Option<f64>); N]) -> Self {
        let rows = rows.map(|(name, base, goal)| Row {
            name,
            base,
            goal,
            micros: Vec::new(),
        });
        Self { rows: rows.into() }
    }

    /// Adds the figures of one round, in the order of the rows.
    pub(super) fn add<const N: usize>(&mut self, micros: [f64; N]) {
        for (row, micros) in self.rows.iter_mut().zip(micros) {
            row.micros.push(micros);
        }
    }

    /// The table as text.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{:54} {:>7} {:>7} {:>7}\n", "", "µs", "ratio", "goal");
        for row in &self.rows {
            let goal = row
                .goal
                .map_or_else(String::new, |goal| format!("{goal:.2}"));
            let (micros, ratio) = (median(row.micros.clone()), self.ratio(row));
            let name = row.name;
            let _ = writeln!(text, "{name:54} {micros:7.2} {ratio:7.2} {goal:>7}");
        }
        text
    }

    /// Fails if a goal is missed.
    pub(super) fn verdict(&self) -> Result<(), Failed> {
        let missed: Vec<_> = self
            .rows
            .iter()
            .filter(|row| row.goal.is_some_and(|goal| self.ratio(row) > goal))
            .map(|row| row.name)
            .collect();
        if missed.is_empty() {
            Ok(())
        } else {
            Err(Failed(format!("a goal is missed: {}", missed.join("; "))))
        }
    }

    /// The median of the ratios of each round: a round that was disturbed disturbs both.
    fn ratio(&self, row: &Row) -> f64 {
        let base = &self.rows[row.base].micros;
        let ratios = row.micros.iter().zip(base).map(|(one, other)| one / other);
        median(ratios.collect())
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_for_the_median_of_the_ratios() {
        let mut table = Table::new([("one", 0, None), ("other", 0, Some(2.0))]);
        for (one, other) in [(1.0, 2.0), (10.0, 19.0), (1.0, 50.0)] {
            table.add([one, other]);
        }
        table.verdict().unwrap();
        table.add([1.0, 2.1]);
        table.add([1.0, 2.1]);
        assert!(table.verdict().is_err());
        assert!(
            table.text().contains("2.10    2.10    2.00"),
            "{}",
            table.text()
        );
    }
}
