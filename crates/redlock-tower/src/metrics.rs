//! The metrics of layers, by name; with the feature `metrics`.
//!
//! How long requests wait for their locks and hold them is in the metrics of `redlock-core`, by the class of the lock.

#[cfg(feature = "metrics")]
use redlock_core::metrics::{Kind, Metric, Unit};

use crate::RejectionKind;

/// All metrics of this crate.
#[cfg(feature = "metrics")]
pub const ALL: &[Metric] = &[Metric::new(
    "redlock_http_requests_total",
    Kind::Counter,
    Unit::Count,
    &["outcome"],
    "HTTP requests that were answered, by outcome; one whose body is cut off later counts as lost too.",
)];

/// The outcome of a request, as it is counted.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "nothing is counted")
)]
pub(crate) enum RequestOutcome {
    /// The inner service answered it, under its lock.
    Served,
    /// The inner service answered it, and took no lock.
    Unlocked,
    Refused(RejectionKind),
}

/// Counts a request.
#[cfg(not(feature = "metrics"))]
pub(crate) fn count(_: RequestOutcome) {}

/// Counts a request.
// Each name is written out, so that nothing is allocated for it.
#[cfg(feature = "metrics")]
pub(crate) fn count(outcome: RequestOutcome) {
    macro_rules! outcome {
        ($name:literal) => {
            ::metrics::counter!("redlock_http_requests_total", "outcome" => $name)
        };
    }
    let counter = match outcome {
        RequestOutcome::Served => outcome!("served"),
        RequestOutcome::Unlocked => outcome!("unlocked"),
        RequestOutcome::Refused(kind) => match kind {
            RejectionKind::Contended => outcome!("contended"),
            RejectionKind::Key => outcome!("key"),
            RejectionKind::Overloaded => outcome!("overloaded"),
            RejectionKind::Unavailable => outcome!("unavailable"),
            RejectionKind::Closed => outcome!("closed"),
            RejectionKind::Lost => outcome!("lost"),
            RejectionKind::Follower => outcome!("follower"),
            RejectionKind::Misuse => outcome!("misuse"),
        },
    };
    counter.increment(1);
}

/// Tells the recorder what the metrics mean.
pub(crate) fn describe() {
    #[cfg(feature = "metrics")]
    redlock_core::metrics::describe(ALL);
}
