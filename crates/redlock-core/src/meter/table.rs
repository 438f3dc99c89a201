//! The names of all metrics, with what they mean.

use metrics::{KeyName, SharedString, Unit, with_recorder};

/// A metric of this crate, with the feature `metrics`.
///
/// The label `lock` is the class of the lease ([`Lease::class`](crate::Lease::class)), `unnamed` without a class, and
/// `other` beyond 256 classes.
/// The label `keys` is `one` or `several`.
/// The label `node` is an address without credentials.
/// No label contains a secret or a key, but for the name of an election without a class.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Metric {
    /// Its name with its unit, in the form that Prometheus uses; a histogram's series end with `_bucket`, `_sum` or
    /// `_count`.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// The unit in which it is measured.
    pub unit: Unit,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Its meaning, for people.
    pub help: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations by their size.
    Histogram,
}

impl Metric {
    /// Makes a metric with this name.
    pub const fn new(
        name: &'static str,
        kind: Kind,
        unit: Unit,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            unit,
            labels,
            help,
        }
    }
}

/// Describes these metrics to the recorder.
///
/// [`build`](crate::RedlockBuilder::build) does it for the metrics of this crate.
pub fn describe(metrics: &'static [Metric]) {
    with_recorder(|recorder| {
        for metric in metrics {
            let name = KeyName::from_const_str(metric.name);
            let (unit, help) = (Some(metric.unit), SharedString::const_str(metric.help));
            match metric.kind {
                Kind::Counter => recorder.describe_counter(name, unit, help),
                Kind::Gauge => recorder.describe_gauge(name, unit, help),
                Kind::Histogram => recorder.describe_histogram(name, unit, help),
            }
        }
    });
}

/// A list of metrics: the name, the kind, the unit and the labels of each, and its meaning.
macro_rules! table {
    ($($name:literal, $kind:ident, $unit:ident, $labels:expr => $help:literal;)*) => {
        &[$(Metric::new($name, Kind::$kind, Unit::$unit, $labels, $help)),*]
    };
}

/// All metrics of this crate.
pub const ALL: &[Metric] = table! {
    "redlock_acquire_total", Counter, Count, BY_RESULT
        => "Acquires that are over, by their result.";
    "redlock_acquire_retries_total", Counter, Count, BY_LOCK
        => "Attempts of acquires after their first one, because nodes had granted others the key or did not answer; not those \
         of callers of slots.";
    "redlock_acquire_duration_seconds", Histogram, Seconds, BY_KEYS
        => "How long acquires of one key or of several took, with the wait; not those of candidates of an election.";
    "redlock_wait_duration_seconds", Histogram, Seconds, BY_KEYS
        => "How long callers waited for their turn in this process, or for their first turn at one of several slots.";
    "redlock_hold_duration_seconds", Histogram, Seconds, BY_LOCK
        => "How long leases were held.";
    "redlock_held", Gauge, Count, BY_LOCK
        => "Leases that are held.";
    "redlock_waiters", Gauge, Count, BY_KEYS
        => "Callers that wait for a lease, on one key or on several; a candidate of an election is none.";
    "redlock_extend_total", Counter, Count, BY_RESULT
        => "Rounds of extension, by their result.";
    "redlock_endangered_total", Counter, Count, BY_LOCK
        => "Leases whose renewal failed until little more than a third of their time to live was left.";
    "redlock_lost_total", Counter, Count, &["namespace", "lock", "reason"]
        => "Leases that were lost before their release, by the reason.";
    "redlock_release_total", Counter, Count, BY_LOCK
        => "Leases that ended with their release or hand-over.";
    "redlock_leader", Gauge, Count, BY_LOCK
        => "1 while this process leads the election, or 0.";
    "redlock_terms_total", Counter, Count, BY_LOCK
        => "Terms of an election that this process has won.";
    "redlock_node_requests_total", Counter, Count, &["namespace", "node", "result"]
        => "Calls to a node, by their result.";
    "redlock_node_request_duration_seconds", Histogram, Seconds, BY_NODE
        => "How long calls to a node took.";
    "redlock_node_up", Gauge, Count, BY_NODE
        => "1 if there is a connection to the node, or 0.";
    "redlock_node_votes", Gauge, Count, BY_NODE
        => "1 if the node votes, or 0.";
    "redlock_node_quarantine_remaining_seconds", Gauge, Seconds, BY_NODE
        => "In how long the node votes again at the earliest; 0 if it is not in quarantine.";
    "redlock_node_clock_offset_seconds", Gauge, Seconds, BY_NODE
        => "How far the node's wall clock is ahead of that of a majority of the nodes; from 1 on it does not vote.";
    "redlock_clock_offset_seconds", Gauge, Seconds, BY_NAMESPACE
        => "How far this machine's wall clock is ahead of that of a majority of the nodes.";
    "redlock_nodes", Gauge, Count, BY_NAMESPACE
        => "How many nodes there are.";
    "redlock_quorum", Gauge, Count, BY_NAMESPACE
        => "How many nodes must vote.";
    "redlock_quorum_margin", Gauge, Count, BY_NAMESPACE
        => "How many nodes may stop to vote before the majority is lost; below 0 there is none.";
};

const BY_NAMESPACE: &[&str] = &["namespace"];
const BY_LOCK: &[&str] = &["namespace", "lock"];
const BY_KEYS: &[&str] = &["namespace", "lock", "keys"];
const BY_RESULT: &[&str] = &["namespace", "lock", "result"];
const BY_NODE: &[&str] = &["namespace", "node"];
