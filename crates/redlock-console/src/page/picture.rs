//! Pictures, as SVG that the server draws, so that they are there without a script.
//!
//! Places along the width are per cent, so that a picture fits every screen and its words are not stretched.

use std::fmt::Write as _;

use super::{
    html::{Attributes, Html},
    time::{as_ms, span},
};
use crate::snapshot::MarginStep;

/// A place along a picture's width, from 0 to 100.
pub(super) struct Percent(pub(super) f64);

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2}%", self.0.clamp(0.0, 100.0))
    }
}

/// A span of time as a picture shows it from left to right.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeWindow {
    pub(super) from_ms: f64,
    pub(super) to_ms: f64,
}

impl TimeWindow {
    /// Returns where a moment is; `None` if the picture does not show it.
    fn place(self, at_ms: f64) -> Option<Percent> {
        let is_inside = (self.from_ms..=self.to_ms).contains(&at_ms);
        is_inside.then(|| self.clamped(at_ms))
    }

    fn clamped(self, at_ms: f64) -> Percent {
        Percent(100.0 * (at_ms - self.from_ms) / (self.to_ms - self.from_ms))
    }
}

impl Html {
    /// Adds the number of votes of the last hour as steps, with the number that is needed.
    pub(super) fn margin(&mut self, steps: &[MarginStep], nodes: usize, majority: usize, now: f64) {
        let first = steps.first().map_or(now, |step| as_ms(step.at_ms));
        // At least two minutes, so that the first look is not all there is.
        let window = TimeWindow {
            from_ms: first.clamp(now - HOUR_MS, now - 120_000.0),
            to_ms: now,
        };
        let unit = MARGIN_HIGH / as_f64(nodes.max(1));
        let top = |votes: usize| MARGIN_HIGH + PAD - unit * as_f64(votes);
        let words = format!(
            "the number of nodes that voted in the last hour; {majority} of {nodes} are needed"
        );
        let attributes: Attributes<'_> = &[
            ("class", &"margin"),
            ("width", &"100%"),
            ("height", &2.0f64.mul_add(PAD, MARGIN_HIGH)),
            ("role", &"img"),
            ("aria-label", &words),
        ];
        self.element("svg", attributes, |html| {
            let ends = steps.iter().skip(1).map(|step| as_ms(step.at_ms));
            for (step, end) in steps.iter().zip(ends.chain([now])) {
                let Some(votes) = step.votes else { continue };
                let begin = as_ms(step.at_ms).max(window.from_ms);
                if end <= window.from_ms {
                    continue;
                }
                let (x, until) = (window.clamped(begin), window.clamped(end));
                let width = Percent(until.0 - x.0);
                let class = if votes >= majority { "ok" } else { "bad" };
                for (class, height) in [(class, unit * as_f64(votes)), ("edge", 2.0)] {
                    let attributes: Attributes<'_> = &[
                        ("class", &class),
                        ("x", &x),
                        ("y", &top(votes)),
                        ("width", &width),
                        ("height", &height),
                    ];
                    html.leaf("rect", attributes, "");
                }
            }
            for (votes, class, words) in [
                (nodes, "all", format!("{nodes} nodes")),
                (majority, "need", format!("{majority} needed")),
            ] {
                let y = top(votes);
                html.leaf(
                    "line",
                    &[("class", &class), ("x2", &"100%"), ("y1", &y), ("y2", &y)],
                    "",
                );
                html.leaf("text", &[("x", &"4"), ("y", &(y + 12.0))], words);
            }
        });
        self.element("p", &[("class", &"axis")], |html| {
            html.leaf(
                "span",
                &[],
                format_args!("{} ago", span(now - window.from_ms)),
            );
            html.leaf("span", &[], "now");
        });
    }

    /// Adds the longest answer of each minute as a small line.
    pub(super) fn spark(&mut self, by_minute: &[Option<f64>]) {
        const HIGH: f64 = 16.0;
        let longest = by_minute.iter().flatten().fold(0.0, |a: f64, b| a.max(*b));
        if longest <= 0.0 {
            return;
        }
        let (mut path, mut verb) = (String::new(), 'M');
        for (place, time) in by_minute.iter().enumerate() {
            match time {
                // A minute alone is a dash of one.
                Some(time) => {
                    let y = HIGH - (HIGH - 1.0) * time / longest;
                    let _ = write!(path, "{verb}{place} {y:.1}h1");
                    verb = 'L';
                }
                None => verb = 'M',
            }
        }
        let words = format!("the longest answer of each minute, up to {}", span(longest));
        let size = format!("0 0 {} 17", by_minute.len().max(1));
        let attributes: Attributes<'_> = &[
            ("class", &"spark"),
            ("viewBox", &size),
            ("preserveAspectRatio", &"none"),
            ("role", &"img"),
            ("aria-label", &words),
        ];
        self.element("svg", attributes, |html| {
            html.leaf("path", &[("d", &path)], "");
        });
    }

    /// Adds a line of time with marks: a class, a moment and words for each, and a mark for now.
    pub(super) fn marks(
        &mut self,
        label: &str,
        window: TimeWindow,
        now: f64,
        marks: impl IntoIterator<Item = (&'static str, f64)>,
    ) {
        let attributes: Attributes<'_> = &[
            ("class", &"marks"),
            ("width", &"100%"),
            ("height", &"18"),
            ("role", &"img"),
            ("aria-label", &label),
        ];
        self.element("svg", attributes, |html| {
            if let Some(now) = window.place(now) {
                html.leaf(
                    "line",
                    &[("class", &"now"), ("x1", &now), ("x2", &now), ("y2", &"18")],
                    "",
                );
            }
            for (class, at) in marks {
                let Some(x) = window.place(at) else { continue };
                html.leaf(
                    "circle",
                    &[("class", &class), ("cx", &x), ("cy", &"9"), ("r", &"4")],
                    "",
                );
            }
        });
    }

    /// Adds spans on a line of time: a class, the begin and the end of each, and its words.
    pub(super) fn spans<'a>(
        &mut self,
        label: &str,
        window: TimeWindow,
        spans: impl IntoIterator<Item = (&'static str, f64, f64, &'a str)>,
    ) {
        let attributes: Attributes<'_> = &[
            ("class", &"spans"),
            ("width", &"100%"),
            ("height", &"18"),
            ("role", &"img"),
            ("aria-label", &label),
        ];
        self.element("svg", attributes, |html| {
            for (class, from, to, words) in spans {
                let (x, end) = (window.clamped(from), window.clamped(to));
                let width = Percent((end.0 - x.0).max(0.3));
                let attributes: Attributes<'_> = &[
                    ("class", &class),
                    ("x", &x),
                    ("width", &width),
                    ("height", &"18"),
                ];
                html.element("rect", attributes, |html| html.leaf("title", &[], words));
            }
        });
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number of nodes")]
pub(super) const fn as_f64(count: usize) -> f64 {
    count as f64
}

const MARGIN_HIGH: f64 = 70.0;
const PAD: f64 = 2.0;

const HOUR_MS: f64 = 3_600_000.0;
