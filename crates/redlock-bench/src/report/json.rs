//! The results for programs.

use serde::{Deserialize, Serialize};

use super::{Measure, Report};
use crate::{
    failed::{Failed, Result},
    goals::{self, Bound},
    statistics::Summary,
};

/// One figure as programs read it.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    row: &'a str,
    /// The contender it is a figure of.
    contender: &'a str,
    metric: &'a str,
    /// The median of the repeats, and what it lies between; null if it could not be measured.
    value: f64,
    min: f64,
    max: f64,
    /// What the figure was divided by; null where it stands by itself.
    against: Option<&'a str>,
    /// Null where there is none.
    goal: Option<Bound>,
    met: Option<bool>,
}

impl Report {
    /// Writes all figures and goals as a list in JSON; a goal of a row that was run is there though nothing was measured.
    pub(crate) fn json(&self) -> Result<String> {
        let measured = self.measures.iter().map(entry);
        let unmeasured = self.missed().into_iter();
        let unmeasured = unmeasured.filter(|goal| self.measure_of(goal).is_none());
        let unmeasured = unmeasured.map(|goal| Entry {
            row: goal.row,
            contender: super::OURS,
            metric: goal.metric,
            value: f64::NAN,
            min: f64::NAN,
            max: f64::NAN,
            against: some(goal.against),
            goal: Some(goal.bound),
            met: Some(false),
        });
        let entries: Vec<_> = measured.chain(unmeasured).collect();
        Ok(serde_json::to_string_pretty(&entries)? + "\n")
    }
}

/// One figure of a file of results, as far as it says what was measured.
#[derive(Debug, Deserialize)]
struct Written {
    row: String,
    contender: String,
    metric: String,
    value: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    against: Option<String>,
}

impl Report {
    /// Reads the figures of an earlier run; their goals are those of today.
    pub(crate) fn of_json(text: &str) -> Result<Self> {
        let mut report = Self::default();
        for entry in serde_json::from_str::<Vec<Written>>(text)? {
            let row = goals::row(&entry.row);
            let row = row.ok_or_else(|| Failed(format!("there is no row {}", entry.row)))?;
            if !report.rows.contains(&row) {
                report.rows.push(row);
            }
            let [median, min, max] =
                [entry.value, entry.min, entry.max].map(|figure| figure.unwrap_or(f64::NAN));
            report.measures.push(Measure {
                row,
                contender: entry.contender,
                metric: entry.metric,
                against: entry.against.unwrap_or_default(),
                summary: Summary { median, min, max },
            });
        }
        Ok(report)
    }
}

fn entry(measure: &Measure) -> Entry<'_> {
    Entry {
        row: measure.row,
        contender: &measure.contender,
        metric: &measure.metric,
        value: measure.summary.median,
        min: measure.summary.min,
        max: measure.summary.max,
        against: some(&measure.against),
        goal: measure.goal().map(|goal| goal.bound),
        met: measure.is_met(),
    }
}

fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::report::OURS;

    #[test]
    fn each_figure_is_told_with_its_goal_and_each_goal_without_a_figure() {
        let mut report = Report::default();
        report.begin("P1", "");
        report.add("P1", OURS, "p50 of a pair", "raw", &vec![1.0, 1.75, 2.0]);
        report.add("P1", "rslock", "p50 of a pair", "raw", &vec![f64::NAN]);
        let list: Vec<Value> = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!(
            list[0],
            json!({
                "row": "P1", "contender": "ours", "metric": "p50 of a pair", "value": 1.75, "min": 1.0, "max": 2.0,
                "against": "raw", "goal": { "at_most": 1.5 }, "met": false,
            })
        );
        assert_eq!(
            (&list[1]["goal"], &list[1]["met"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(
            (&list[1]["value"], &list[1]["contender"]),
            (&Value::Null, &json!("rslock"))
        );
        let unmeasured = list.iter().filter(|entry| entry["met"] == false);
        assert_eq!(unmeasured.count(), 4, "one was measured, three were not");
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut report = Report::default();
        report.begin("P1", "");
        report.add("P1", OURS, "p50 of a pair", "raw", &vec![1.0, 1.75, 2.0]);
        report.add("P1", "rslock", "p50 of a pair, µs", "", &vec![f64::NAN]);
        let text = report.json().unwrap();
        let read = Report::of_json(&text).unwrap();
        assert_eq!(read.json().unwrap(), text);
        assert!(Report::of_json(&text.replace("P1", "P77")).is_err());
    }
}
