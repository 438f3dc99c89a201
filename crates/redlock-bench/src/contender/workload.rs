//! What a contender is told to do, and what it says of it: one line of JSON each.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One line to a contender.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Workload {
    /// Tasks that acquire and release keys of their own, each used once, for a time.
    Pairs { tasks: usize, length: Duration },
    /// A number of pairs as above, however long that takes.
    Keys { tasks: usize, count: u64 },
    /// Tasks that want one key, and hold it for a time whenever they have it.
    HotKey {
        key: String,
        waiters: usize,
        hold: Duration,
        length: Duration,
    },
    /// Acquires so many locks, whose names begin with this one, and keeps them.
    Hold {
        key: String,
        tasks: usize,
        count: u64,
        ttl: Duration,
    },
    /// Has a task wait for each of these locks, which another process has, and gives up after a time.
    ///
    /// The figures are those of the third quarter of that time; it failed where a task did not wait to the end.
    Wait {
        key: String,
        count: u64,
        length: Duration,
    },
    /// Does nothing for a time but keep what it has.
    Rest { length: Duration },
}

impl Workload {
    /// Returns how long it takes at the longest if all goes well.
    pub(crate) fn length(&self) -> Duration {
        match *self {
            Self::Pairs { length, .. }
            | Self::HotKey { length, .. }
            | Self::Wait { length, .. }
            | Self::Rest { length } => length,
            Self::Keys { count, .. } | Self::Hold { count, .. } => Duration::from_millis(count),
        }
    }
}

/// The line that a contender answers with.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct Outcome {
    /// From the first operation to the end of the last one.
    pub(crate) wall: Duration,
    /// The CPU time of the contender in that time.
    pub(crate) cpu: Duration,
    /// The resident bytes at the end, where the system says.
    pub(crate) memory: Option<u64>,
    /// How many operations were done as they should, or how many locks are still held.
    pub(crate) done: u64,
    /// How many were not, or how many locks are lost.
    pub(crate) failed: u64,
    /// From the start of an acquire to the end of the release.
    pub(crate) pair: Spread,
    /// From the start of an acquire to its end.
    pub(crate) acquire: Spread,
    /// From the start of an acquire of a key that others want to its end.
    pub(crate) wait: Spread,
    /// From the moment at which one of the tasks is about to release to that at which the next has the key.
    pub(crate) hand_over: Spread,
    /// How long a lock was held on average.
    pub(crate) hold: Duration,
    /// How often each of the tasks had the key.
    pub(crate) shares: Vec<u64>,
    /// How often two of the tasks had the key at once.
    pub(crate) overlaps: u64,
}

/// Some quantiles of durations.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) max: Duration,
}

impl Spread {
    /// Finds the quantiles of what was measured; all are zero if that is nothing.
    pub(crate) fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        let at = |share: f64| {
            let index = (durations.len() as f64 * share) as usize;
            let last = durations.len().saturating_sub(1);
            durations.get(index.min(last)).copied().unwrap_or_default()
        };
        Self {
            p50: at(0.5),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_one_line_and_comes_back_as_it_was() {
        let workload = Workload::Pairs {
            tasks: 64,
            length: Duration::from_millis(500),
        };
        let line = serde_json::to_string(&workload).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(
            serde_json::from_str::<Workload>(&line).unwrap(),
            workload,
            "{line}"
        );
    }

    #[test]
    fn what_a_contender_of_another_tree_does_not_say_is_empty() {
        let outcome: Outcome =
            serde_json::from_str(r#"{"done":3,"wall":{"secs":1,"nanos":0}}"#).unwrap();
        assert_eq!((outcome.done, outcome.failed), (3, 0));
        assert_eq!(outcome.wall, Duration::from_secs(1));
    }

    #[test]
    fn quantiles_are_of_the_sorted_durations() {
        let durations = (1..=100).rev().map(Duration::from_micros).collect();
        let spread = Spread::of(durations);
        assert_eq!(spread.p50, Duration::from_micros(51));
        assert_eq!(spread.p99, Duration::from_micros(100));
        assert_eq!(Spread::of(Vec::new()), Spread::default());
    }
}
