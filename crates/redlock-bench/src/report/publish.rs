//! The figures of a run in the documents that tell of it.

use std::{fmt::Write, fs, path::Path};

use super::{Report, number};
use crate::{
    failed::{Failed, Result},
    goals::{self, Bound, Goal},
    statistics::Summary,
};

/// A place in a document whose text is made from figures.
#[derive(Debug)]
struct FigurePlace {
    document: &'static str,
    /// The text before it, which the document has once, and the text after it.
    around: (&'static str, &'static str),
    text: String,
}

impl FigurePlace {
    /// Returns the document with the text in its place.
    fn put(&self, document: &str) -> Result<String> {
        let (before, after) = self.around;
        let lost = || Failed(format!("{} has not once: {before}", self.document));
        let (head, rest) = document.split_once(before).ok_or_else(lost)?;
        let end = rest.find(after).ok_or_else(lost)?;
        if rest.contains(before) {
            return Err(lost());
        }
        Ok([head, before, &self.text, &rest[end..]].concat())
    }
}

impl Report {
    /// Writes the figures into the documents of a repository, and all results into `docs/results.json`.
    ///
    /// # Errors
    ///
    /// If a document cannot be read or written, or has lost the place of a figure.
    pub(crate) fn publish(&self, root: &Path) -> Result<()> {
        for place in self.places() {
            let path = root.join(place.document);
            let document = place.put(&fs::read_to_string(&path)?)?;
            fs::write(path, document)?;
        }
        Ok(fs::write(root.join("docs/results.json"), self.json()?)?)
    }

    fn places(&self) -> Vec<FigurePlace> {
        let figure = |goal: (&str, &str, &str)| self.median(goal);
        let [p1, p2_64, p2_256] = [
            ("P1", "p50 of a pair"),
            ("P2", "pairs/s, 64 tasks"),
            ("P2", "pairs/s, 256 tasks"),
        ];
        let beside = |(row, metric): (_, _), peers: &[&str]| {
            let cells = peers.iter().map(|peer| number(figure((row, metric, peer))));
            cells.collect::<Vec<_>>().join(" | ")
        };
        let peers = ["raw", "redis-rs", "rslock", "redlock"];
        let mut places = Vec::new();
        let mut place = |document, around, text| {
            places.push(FigurePlace {
                document,
                around,
                text,
            });
        };
        for (before, of, peers) in [
            (
                "| time of a pair, one task; less is better | ",
                p1,
                &peers[..],
            ),
            (
                "| pairs per second, 64 tasks; more is better | ",
                p2_64,
                &peers[..3],
            ),
            (
                "| pairs per second, 256 tasks; more is better | ",
                p2_256,
                &peers[..3],
            ),
        ] {
            let after = if peers.len() == 4 {
                " |\n"
            } else {
                " | it blocks |\n"
            };
            place(PAGE, (before, after), beside(of, peers));
        }
        for line in SENTENCES.lines() {
            let columns: Vec<_> = line.split('|').map(str::trim).collect();
            let [sentence, row, metric, peer] = columns[..] else {
                panic!("{line:?} has not four columns");
            };
            let around = sentence.split_once('…').expect("it has a gap");
            place(PAGE, around, number(figure((row, metric, peer))));
        }
        place(PAGE, ("\n- Of the goals below, ", "\n"), self.misses());
        place(PAGE, (HEAD, "\n\n"), self.table().trim_end().to_owned());
        for (before, (row, metric)) in [
            ("\n| pairs per second, 64 tasks | ", p2_64),
            ("\n| pairs per second, 256 tasks | ", p2_256),
            ("\n| time of a pair, one task (less is better) | ", p1),
        ] {
            let [rslock, redis_rs] = ["rslock", "redis-rs"].map(|peer| figure((row, metric, peer)));
            place(
                "README.md",
                (before, " |\n"),
                format!("{rslock:.1} | {redis_rs:.1}"),
            );
        }
        places
    }

    fn median(&self, (row, metric, against): (&str, &str, &str)) -> f64 {
        let goal = goals::find(row, metric, against);
        let measure = goal.and_then(|goal| self.measure_of(goal));
        measure.map_or(f64::NAN, |measure| measure.summary.median)
    }

    /// Says in a sentence how many goals of which rows are missed.
    fn misses(&self) -> String {
        let missed = self.missed();
        let of_row = |row: &&str| {
            let count = missed.iter().filter(|goal| goal.row == *row).count();
            (count > 0).then(|| format!("{count} of {row}"))
        };
        let rows: Vec<_> = self.rows.iter().filter_map(of_row).collect();
        match &rows[..] {
            [] => "the run missed none.".to_owned(),
            rows => format!("the run missed {}: {}.", missed.len(), rows.join(", ")),
        }
    }

    /// Writes a line for each goal of the rows that were run.
    fn table(&self) -> String {
        let mut table = String::new();
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

/// The document that tells of all figures.
const PAGE: &str = "docs/performance.md";

/// Sentences of [`PAGE`] with a gap for a figure, each with the row, the metric and the peer of the figure.
const SENTENCES: &str = "\
A single task's pair takes … times that of `rslock` | P1 | p50 of a pair | rslock
where the network takes no time, and … times | P3 | p50 of a pair | rslock
behind a round trip of 4 ms: it takes … round trips | P3 | p50 of a pair | round trip
With one of five nodes frozen, throughput is … times | P4 | pairs/s | healthy
hand the lease over: … times | P5 | acquisitions/s | rslock
in one process, and … times | P7 | acquisitions/s | rslock
100,000 leases of 30 s took … of a core | P8 | share of a core, for 100,000 leases of 30 s |
of a core, nodes included, and … bytes | P8 | memory of a lease in the client, bytes |
each of 1,000 keys took … of a core | P18 | share of a core, for 1,000 keys |";

/// The head of the table of goals.
const HEAD: &str = "| row | figure | median (min..max) | goal | |\n|---|---|---|---|---|\n";

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{goals::GOALS, report::OURS};

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// Reads the results that the documents tell of.
    fn published() -> Report {
        let text = fs::read_to_string(root().join("docs/results.json")).unwrap();
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
        let table = report.table();
        assert!(
            table.contains("| P1 | p50 of a pair, × raw | 1.20 (1.00..1.40) | ≤ 1.5 | met |\n"),
            "{table}"
        );
        assert!(
            table.contains("| P1 | p50 of a pair, × rslock | not measured | ≤ 0.9 | missed |\n"),
            "{table}"
        );
    }

    #[test]
    fn the_documents_have_the_published_figures() {
        let report = published();
        let goals = report.table().lines().count();
        assert_eq!(goals, GOALS.len(), "a row with goals was not run");
        for place in report.places() {
            let document = fs::read_to_string(root().join(place.document)).unwrap();
            let text = place.put(&document).unwrap();
            assert!(
                text == document,
                "cargo xtask bench --publish docs/results.json was not called: {place:#?}"
            );
        }
    }

    #[test]
    fn another_run_takes_the_place_of_the_published_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        for document in ["README.md", "docs/performance.md"] {
            fs::copy(root().join(document), folder.path().join(document)).unwrap();
        }
        let mut another = published();
        for measure in &mut another.measures {
            measure.summary.median = 0.123;
        }
        another.publish(folder.path()).unwrap();
        let read = |document| fs::read_to_string(folder.path().join(document)).unwrap();
        let page = read("docs/performance.md");
        for line in [
            "| pairs per second, 64 tasks; more is better | 0.12 | 0.12 | 0.12 | it blocks |\n",
            "100,000 leases of 30 s took 0.12 of a core, nodes included, and 0.12 bytes each",
            "| P18 | share of a core, for 1,000 keys | 0.12 (",
        ] {
            assert!(page.contains(line), "{line}");
        }
        assert!(
            read("README.md")
                .contains("| time of a pair, one task (less is better) | 0.1 | 0.1 |\n")
        );
        let results = Report::of_json(&read("docs/results.json")).unwrap();
        assert_eq!(results.json().unwrap(), another.json().unwrap());
    }

    #[test]
    fn a_document_that_lost_the_place_of_a_figure_is_refused() {
        let place = FigurePlace {
            document: "README.md",
            around: ("takes ", " µs"),
            text: "7".to_owned(),
        };
        assert_eq!(place.put("It takes 9 µs.").unwrap(), "It takes 7 µs.");
        for lost in [
            "It needs 9 µs.",
            "It takes 9 ms.",
            "It takes 9 µs, that takes 8 µs.",
        ] {
            assert!(place.put(lost).is_err(), "{lost}");
        }
    }
}
