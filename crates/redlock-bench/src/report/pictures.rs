//! Which pictures there are.

use super::{
    Measure, OURS, Report,
    chart::{Bar, Chart, Group, Tone},
    number,
};
use crate::{
    goals::{self, Bound, Goal},
    statistics::Summary,
};

impl Report {
    /// Draws the pictures of the rows that were run, and names their files.
    pub(crate) fn pictures(&self) -> Vec<(&'static str, String)> {
        let mut pictures = Vec::new();
        let mut add = |name, chart: Chart| {
            if chart.groups.iter().any(|group| !group.bars.is_empty()) {
                pictures.push((name, chart.svg()));
            }
        };
        add("latency.svg", self.latency());
        add("throughput.svg", self.throughput());
        add("cpu.svg", self.cpu());
        add("goals.svg", self.goals());
        pictures
    }

    fn latency(&self) -> Chart {
        Chart {
            title: "Time of an acquire and its release, one task".to_owned(),
            note: "median, as a multiple of the raw loop's; shorter is better; in brackets: the least and the most".to_owned(),
            groups: vec![self.against_raw("", "P1", "p50 of a pair")],
            mark: Some(1.0),
            most: None,
        }
    }

    fn throughput(&self) -> Chart {
        let group = |tasks: &str| self.against_raw(tasks, "P2", &format!("pairs/s, {tasks}"));
        let alone = self.against_raw("1 task", "P1", "pairs/s");
        Chart {
            title: "Acquires with their releases per second".to_owned(),
            note: "as a multiple of the raw loop's; longer is better; in brackets: the least and the most".to_owned(),
            groups: vec![alone, group("64 tasks"), group("256 tasks")],
            mark: Some(1.0),
            most: None,
        }
    }

    fn cpu(&self) -> Chart {
        let group = |tasks: &str| {
            let client = format!("CPU of client per pair, {tasks}, µs");
            let nodes = format!("CPU of nodes per pair, {tasks}, µs");
            let clients = self.of("P2", &client, "");
            let bars = clients.map(|measure| {
                let nodes = self.of("P2", &nodes, "").find(|m| m.who == measure.who);
                let parts = [Some(measure), nodes].into_iter().flatten();
                let parts: Vec<_> = parts.map(|measure| measure.summary.median).collect();
                let text = parts.iter().map(|part| number(*part));
                let text = text.collect::<Vec<_>>().join(" + ");
                Bar {
                    text: format!("{text} µs"),
                    parts,
                    ..bar(measure)
                }
            });
            Group {
                name: tasks.to_owned(),
                bars: bars.collect(),
            }
        };
        Chart {
            title: "CPU time of an acquire and its release".to_owned(),
            note: "client (dark) + all five nodes (light); shorter is better".to_owned(),
            groups: vec![group("64 tasks"), group("256 tasks")],
            mark: None,
            most: None,
        }
    }

    fn goals(&self) -> Chart {
        let groups = self.rows.iter().map(|row| Group {
            name: format!("{row}  {}", goals::subject(row)),
            bars: goals::of_row(row).map(|goal| self.goal(goal)).collect(),
        });
        Chart {
            title: "The goals".to_owned(),
            note: "how far each figure is from its goal, the line; shorter is better".to_owned(),
            groups: groups.filter(|group| !group.bars.is_empty()).collect(),
            mark: Some(1.0),
            most: Some(4.0),
        }
    }

    fn goal(&self, goal: &Goal) -> Bar {
        let figure = self.measure_of(goal);
        let figure = figure.map_or(f64::NAN, |measure| measure.summary.median);
        let share = match goal.bound {
            Bound::AtMost(most) => figure / most,
            Bound::AtLeast(least) => least / figure,
        };
        Bar {
            name: goal.name(),
            parts: vec![share],
            text: format!("{}, goal {}", number(figure), goal.bound.text()),
            tone: if goal.bound.holds(figure) {
                Tone::Strong
            } else {
                Tone::Bad
            },
        }
    }

    /// Makes bars of a figure as a multiple of *raw*'s, which is among them.
    fn against_raw(&self, name: &str, row: &str, metric: &str) -> Group {
        let mut bars: Vec<_> = self.of(row, metric, RAW).map(bar).collect();
        if !bars.is_empty() {
            let raw = Bar {
                name: label(RAW).to_owned(),
                parts: vec![1.0],
                text: "1".to_owned(),
                tone: Tone::Plain,
            };
            bars.insert(0, raw);
        }
        Group {
            name: name.to_owned(),
            bars,
        }
    }

    pub(super) fn of(
        &self,
        row: &str,
        metric: &str,
        against: &str,
    ) -> impl Iterator<Item = &Measure> {
        self.measures.iter().filter(move |measure| {
            (measure.row, &*measure.metric, &*measure.against) == (row, metric, against)
        })
    }
}

fn bar(measure: &Measure) -> Bar {
    let Summary { median, min, max } = measure.summary;
    Bar {
        name: label(&measure.who).to_owned(),
        parts: vec![median],
        text: format!("{} ({}..{})", number(median), number(min), number(max)),
        tone: if measure.who == OURS {
            Tone::Strong
        } else {
            Tone::Plain
        },
    }
}

/// Returns what a picture calls a contender: its readers have not read what the contenders are.
fn label(who: &str) -> &str {
    match who {
        RAW => "raw loop",
        "redis-rs" => "redis-rs, by hand",
        "redlock" => "crate redlock",
        "rslock" => "crate rslock",
        other => other,
    }
}

const RAW: &str = "raw";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_was_not_run_has_no_picture() {
        let mut report = Report::default();
        report.begin("P1", "");
        report.add("P1", OURS, "p50 of a pair", RAW, &vec![2.5]);
        let pictures = report.pictures();
        let names: Vec<_> = pictures.iter().map(|picture| picture.0).collect();
        assert_eq!(names, ["latency.svg", "goals.svg"]);
        let goals = &pictures[1].1;
        assert!(goals.contains("2.50, goal ≤ 1.5"), "{goals}");
        assert!(goals.contains("class=\"bad"), "{goals}");
    }
}
