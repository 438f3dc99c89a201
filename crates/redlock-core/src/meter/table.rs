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

/// All metrics of this crate.
pub const ALL: &[Metric] = &[
    counter(
        "redlock_acquire_total",
        BY_RESULT,
        "Acquires that are over, by their result.",
    ),
    counter(
        "redlock_acquire_retries_total",
        BY_LOCK,
        "Attempts of acquires after their first one, because nodes had granted others the key or did not answer; not those \
         of callers of slots.",
    ),
    seconds(
        "redlock_acquire_duration_seconds",
        BY_KEYS,
        "How long acquires of one key or of several took, with the wait; not those of candidates of an election.",
    ),
    seconds(
        "redlock_wait_duration_seconds",
        BY_KEYS,
        "How long callers waited for their turn in this process, or for their first turn at one of several slots.",
    ),
    seconds(
        "redlock_hold_duration_seconds",
        BY_LOCK,
        "How long leases were held.",
    ),
    gauge(
        "redlock_held",
        Unit::Count,
        BY_LOCK,
        "Leases that are held.",
    ),
    gauge(
        "redlock_waiters",
        Unit::Count,
        BY_KEYS,
        "Callers that wait for a lease, on one key or on several; a candidate of an election is none.",
    ),
    counter(
        "redlock_extend_total",
        BY_RESULT,
        "Rounds of extension, by their result.",
    ),
    counter(
        "redlock_endangered_total",
        BY_LOCK,
        "Leases whose renewal failed until little more than a third of their time to live was left.",
    ),
    counter(
        "redlock_lost_total",
        &["namespace", "lock", "reason"],
        "Leases that were lost before their release, by the reason.",
    ),
    counter(
        "redlock_release_total",
        BY_LOCK,
        "Leases that ended with their release or hand-over.",
    ),
    gauge(
        "redlock_leader",
        Unit::Count,
        BY_LOCK,
        "1 while this process leads the election, or 0.",
    ),
    counter(
        "redlock_terms_total",
        BY_LOCK,
        "Terms of an election that this process has won.",
    ),
    counter(
        "redlock_node_requests_total",
        &["namespace", "node", "result"],
        "Calls to a node, by their result.",
    ),
    seconds(
        "redlock_node_request_duration_seconds",
        BY_NODE,
        "How long calls to a node took.",
    ),
    gauge(
        "redlock_node_up",
        Unit::Count,
        BY_NODE,
        "1 if there is a connection to the node, or 0.",
    ),
    gauge(
        "redlock_node_votes",
        Unit::Count,
        BY_NODE,
        "1 if the node votes, or 0.",
    ),
    gauge(
        "redlock_node_quarantine_remaining_seconds",
        Unit::Seconds,
        BY_NODE,
        "In how long the node votes again at the earliest; 0 if it is not in quarantine.",
    ),
    gauge(
        "redlock_node_clock_offset_seconds",
        Unit::Seconds,
        BY_NODE,
        "How far the node's wall clock is ahead of that of a majority of the nodes; from 1 on it does not vote.",
    ),
    gauge(
        "redlock_clock_offset_seconds",
        Unit::Seconds,
        BY_NAMESPACE,
        "How far this machine's wall clock is ahead of that of a majority of the nodes.",
    ),
    gauge(
        "redlock_nodes",
        Unit::Count,
        BY_NAMESPACE,
        "How many nodes there are.",
    ),
    gauge(
        "redlock_quorum",
        Unit::Count,
        BY_NAMESPACE,
        "How many nodes must vote.",
    ),
    gauge(
        "redlock_quorum_margin",
        Unit::Count,
        BY_NAMESPACE,
        "How many nodes may stop to vote before the majority is lost; below 0 there is none.",
    ),
];

const BY_NAMESPACE: &[&str] = &["namespace"];
const BY_LOCK: &[&str] = &["namespace", "lock"];
const BY_KEYS: &[&str] = &["namespace", "lock", "keys"];
const BY_RESULT: &[&str] = &["namespace", "lock", "result"];
const BY_NODE: &[&str] = &["namespace", "node"];

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric::new(name, Kind::Counter, Unit::Count, labels, help)
}

const fn gauge(
    name: &'static str,
    unit: Unit,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric::new(name, Kind::Gauge, unit, labels, help)
}

const fn seconds(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric::new(name, Kind::Histogram, Unit::Seconds, labels, help)
}
