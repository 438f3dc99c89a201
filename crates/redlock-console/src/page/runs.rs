//! The runs of a job: their colours, their words, and bars of them as SVG.

use std::fmt::Write as _;

use super::{
    html::{Attributes, Html},
    picture::{Percent, as_f64},
    time::{parsed, span},
};
use crate::snapshot::RunSnapshot;

/// How a run ended, as its colour says it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RunColour {
    /// It returned without an error.
    Ok,
    /// It did not.
    Bad,
    /// It was not started.
    Not,
    /// It goes on, or its end is not recorded.
    Open,
}

impl RunColour {
    const ALL: [Self; 4] = [Self::Ok, Self::Bad, Self::Not, Self::Open];

    pub(super) fn of(run: &RunSnapshot) -> Self {
        match (run.outcome.as_deref(), &run.not_started) {
            (None, None) => Self::Open,
            (_, Some(_)) => Self::Not,
            (Some("ok"), None) => Self::Ok,
            (Some(_), None) => Self::Bad,
        }
    }

    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Bad => "bad",
            Self::Not => "not",
            Self::Open => "open",
        }
    }
}

/// Returns the last runs in words, for a picture of them.
pub(super) fn runs_in_words(runs: &[RunSnapshot]) -> String {
    let count = |colour| {
        runs.iter()
            .filter(|run| RunColour::of(run) == colour)
            .count()
    };
    let mut words = match runs.len() {
        0 => return "no run is remembered".to_owned(),
        1 => "the last run".to_owned(),
        many => format!("the last {many} runs"),
    };
    let mut separator = ": ";
    for (colour, called) in [
        (RunColour::Ok, "ended well"),
        (RunColour::Bad, "did not"),
        (RunColour::Not, "not started"),
        (RunColour::Open, "without an end"),
    ] {
        let count = count(colour);
        if count > 0 {
            // Writing to a string cannot fail.
            let _ = write!(words, "{separator}{count} {called}");
            separator = ", ";
        }
    }
    words
}

impl Html {
    /// Adds the last runs as bars, the newest on the right: the colour is the outcome, the height the duration.
    pub(super) fn strip(&mut self, runs: &[RunSnapshot]) {
        if runs.is_empty() {
            return self.leaf("span", &[("class", &"dim")], "none yet");
        }
        let words = runs_in_words(runs);
        let size = format!("0 0 {} {STRIP}", runs.len() * BAR);
        let width = runs.len() * BAR;
        let attributes: Attributes<'_> = &[
            ("class", &"strip"),
            ("viewBox", &size),
            ("width", &width),
            ("height", &STRIP),
            ("role", &"img"),
            ("aria-label", &words),
        ];
        let longest = longest(runs);
        self.element("svg", attributes, |html| {
            for colour in RunColour::ALL {
                let mut path = String::new();
                for (place, run) in runs.iter().rev().enumerate() {
                    if RunColour::of(run) == colour {
                        let height = bar(run, longest);
                        let _ = write!(
                            path,
                            "M{} {STRIP}v-{height:.0}h{}v{height:.0}z",
                            place * BAR,
                            BAR - 1
                        );
                    }
                }
                if !path.is_empty() {
                    html.leaf("path", &[("class", &colour.class()), ("d", &path)], "");
                }
            }
        });
    }

    /// Adds the same for the page of a job, each bar a link to what is said of its run.
    pub(super) fn large_strip(&mut self, runs: &[RunSnapshot]) {
        const HIGH: f64 = 70.0;
        let longest = longest(runs);
        let words = runs_in_words(runs);
        // A few bars are as wide as if there were more.
        let unit = 100.0 / as_f64(runs.len().max(FEW));
        let attributes: Attributes<'_> = &[
            ("class", &"strip"),
            ("width", &"100%"),
            ("height", &HIGH),
            ("role", &"group"),
            ("aria-label", &words),
        ];
        self.element("svg", attributes, |html| {
            for (place, run) in runs.iter().rev().enumerate() {
                let height = HIGH / f64::from(STRIP) * bar(run, longest);
                let x = Percent(unit * as_f64(place));
                html.element(
                    "a",
                    &[("href", &format_args!("#{}", run_id(run)))],
                    |html| {
                        html.leaf("title", &[], in_words(run));
                        // All of its column can be clicked.
                        for (class, width, height) in [
                            (RunColour::of(run).class(), unit * 0.85, height),
                            ("column", unit, HIGH),
                        ] {
                            let attributes: Attributes<'_> = &[
                                ("class", &class),
                                ("x", &x),
                                ("y", &format_args!("{:.1}", HIGH - height)),
                                ("width", &Percent(width)),
                                ("height", &format_args!("{height:.1}")),
                            ];
                            html.leaf("rect", attributes, "");
                        }
                    },
                );
            }
        });
    }
}

/// Returns the `id` of what is said of a run: the same while newer runs come.
pub(super) fn run_id(run: &RunSnapshot) -> String {
    let tick = parsed(&run.tick).unwrap_or_default();
    let by = match (run.by_hand, run.backfill) {
        (_, true) => "-backfill",
        (true, false) => "-by-hand",
        (false, false) => "",
    };
    format!("run-{tick:.0}-{}{by}", run.attempt)
}

/// Returns a run in a line.
pub(super) fn in_words(run: &RunSnapshot) -> String {
    let tick = &run.tick;
    let end = match (run.outcome.as_deref(), run.not_started.as_deref()) {
        (_, Some(why)) => format!("not started: {why}"),
        (Some(outcome), None) => outcome.replace('_', " "),
        (None, None) => "goes on, or its end is not recorded".to_owned(),
    };
    match run.took_ms {
        Some(took) if run.not_started.is_none() => format!("{tick}: {end} after {}", span(took)),
        _ => format!("{tick}: {end}"),
    }
}

fn longest(runs: &[RunSnapshot]) -> f64 {
    runs.iter()
        .filter_map(|run| run.took_ms)
        .fold(1.0, f64::max)
}

/// Returns how high the bar of a run is: the square root of its duration, so that a second beside an hour can be seen.
fn bar(run: &RunSnapshot, longest: f64) -> f64 {
    let high = f64::from(STRIP);
    match RunColour::of(run) {
        RunColour::Not => 3.0,
        RunColour::Open => high / 2.0,
        RunColour::Ok | RunColour::Bad => {
            let took = run.took_ms.unwrap_or_default();
            (high - 4.0).mul_add((took / longest).max(0.0).sqrt(), 4.0)
        }
    }
}

/// The height of a strip, and the width of one of its bars with the gap beside it.
const STRIP: u16 = 22;
const BAR: usize = 6;

/// The least number of bars for which the large strip has room.
const FEW: usize = 40;
