//! The goals: one table, which the bench enforces.
//!
//! A goal is for what a row measures of the project's client; a row that was run and did not measure it misses it.
//! A goal that is missed stays, unless a profile shows that its price would be too high.

use serde::Serialize;

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    pub(crate) row: &'static str,
    pub(crate) metric: &'static str,
    /// What the figure is divided by; empty where it stands by itself.
    pub(crate) against: &'static str,
    pub(crate) bound: Bound,
}

impl Goal {
    /// Says in words what it is for.
    pub(crate) fn name(&self) -> String {
        name(self.metric, self.against)
    }
}

/// Where a figure has to be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    /// Says if a figure is where it has to be; one that is no number never is.
    pub(crate) fn holds(self, figure: f64) -> bool {
        match self {
            Self::AtMost(most) => figure <= most,
            Self::AtLeast(least) => figure >= least,
        }
    }

    pub(crate) fn text(self) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {most}"),
            Self::AtLeast(least) => format!("≥ {least}"),
        }
    }
}

/// Returns the name of a row, if it is one with goals.
pub(crate) fn row(name: &str) -> Option<&'static str> {
    GOALS.iter().map(|goal| goal.row).find(|row| *row == name)
}

/// Finds the goals of a row.
pub(crate) fn of_row(row: &str) -> impl Iterator<Item = &'static Goal> {
    GOALS.iter().filter(move |goal| goal.row == row)
}

/// Finds the goal for what a row measures, if there is one.
pub(crate) fn find(row: &str, metric: &str, against: &str) -> Option<&'static Goal> {
    of_row(row).find(|goal| goal.metric == metric && goal.against == against)
}

const fn goal(
    row: &'static str,
    metric: &'static str,
    against: &'static str,
    bound: Bound,
) -> Goal {
    Goal {
        row,
        metric,
        against,
        bound,
    }
}

use Bound::{AtLeast, AtMost};

/// All of them.
#[rustfmt::skip]
pub(crate) const GOALS: &[Goal] = &[
    // One task, keys of its own: latency.
    goal("P1", "p50 of a pair", "raw", AtMost(1.5)),
    goal("P1", "p50 of a pair", "rslock", AtMost(0.9)),
    goal("P1", "p50 of a pair", "redis-rs", AtMost(1.25)),
    goal("P1", "p50 of a pair", "redlock", AtMost(1.0)),

    // Many tasks, keys of their own: throughput.
    goal("P2", "pairs/s, 64 tasks", "raw", AtLeast(0.55)),
    goal("P2", "pairs/s, 64 tasks", "rslock", AtLeast(1.8)),
    goal("P2", "pairs/s, 64 tasks", "redis-rs", AtLeast(1.15)),
    goal("P2", "CPU of nodes per pair, 64 tasks", "raw", AtMost(1.3)),
    goal("P2", "pairs/s, 256 tasks", "raw", AtLeast(0.55)),
    goal("P2", "pairs/s, 256 tasks", "rslock", AtLeast(2.2)),
    goal("P2", "pairs/s, 256 tasks", "redis-rs", AtLeast(1.55)),
    goal("P2", "CPU of nodes per pair, 256 tasks", "raw", AtMost(1.0)),

    // A network with a delay: round trips.
    goal("P3", "p50 of a pair", "round trip", AtMost(2.15)),
    goal("P3", "p50 of a pair", "redis-rs", AtMost(1.02)),
    goal("P3", "p50 of a pair", "rslock", AtMost(1.02)),
    goal("P3", "p50 of a pair", "redlock", AtMost(1.02)),

    // One of five nodes frozen.
    goal("P4", "pairs/s", "healthy", AtLeast(0.9)),
    goal("P4", "p99 of a pair", "healthy", AtMost(1.5)),
    goal("P4", "pairs/s", "redis-rs", AtLeast(1.0)),
    goal("P4", "pairs/s", "rslock", AtLeast(1.0)),

    // One key, one process.
    goal("P5", "hand-over p50", "mutex", AtMost(3.5)),
    goal("P5", "acquisitions/s, × 1/hold", "", AtLeast(0.9)),
    goal("P5", "p99 wait, × 16 holds", "", AtMost(1.3)),
    goal("P5", "largest share, × the median", "", AtMost(1.05)),
    goal("P5", "acquisitions/s", "rslock", AtLeast(1.0)),

    // One key, several processes.
    goal("P6", "time between two holds", "round trip", AtMost(1.2)),
    goal("P6", "p99 wait, × 16 turns", "", AtMost(1.3)),
    goal("P6", "largest share of a process, × the median", "", AtMost(1.05)),
    goal("P7", "acquisitions/s", "rslock", AtLeast(7.0)),
    goal("P7", "largest share of a process, × the median", "", AtMost(1.05)),

    // Leases at rest, nodes included.
    goal("P8", "share of a core, for 100,000 leases of 30 s", "", AtMost(0.14)),
    goal("P8", "memory of a lease in the client, bytes", "", AtMost(1200.0)),
    goal("P8", "leases lost with a node killed", "", AtMost(0.0)),

    // Callers that wait for keys of others.
    goal("P18", "share of a core, for 1,000 keys", "", AtMost(0.15)),
];

/// Says in words what a figure is of, and what it is divided by.
pub(crate) fn name(metric: &str, against: &str) -> String {
    match against {
        "" => metric.to_owned(),
        against => format!("{metric}, × {against}"),
    }
}
