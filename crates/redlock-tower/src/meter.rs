//! The counts of the feature `metrics`.

use crate::RejectionKind;

/// What became of a request.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "nothing is counted")
)]
pub(crate) enum Told {
    /// The inner service answered it, under its lock.
    Served,
    /// The inner service answered it, and took no lock.
    Unlocked,
    Refused(RejectionKind),
}

/// Counts a request.
#[cfg(not(feature = "metrics"))]
pub(crate) fn count(_: Told) {}

/// Counts a request.
// Each name is written out, so that nothing is allocated for it.
#[cfg(feature = "metrics")]
pub(crate) fn count(told: Told) {
    macro_rules! outcome {
        ($name:literal) => {
            metrics::counter!("redlock_http_requests_total", "outcome" => $name)
        };
    }
    let counter = match told {
        Told::Served => outcome!("served"),
        Told::Unlocked => outcome!("unlocked"),
        Told::Refused(kind) => match kind {
            RejectionKind::Contended => outcome!("contended"),
            RejectionKind::Key => outcome!("key"),
            RejectionKind::Overloaded => outcome!("overloaded"),
            RejectionKind::Unavailable => outcome!("unavailable"),
            RejectionKind::Closed => outcome!("closed"),
            RejectionKind::Lost => outcome!("lost"),
            RejectionKind::Misuse => outcome!("misuse"),
        },
    };
    counter.increment(1);
}

/// Tells the recorder what the metrics mean.
pub(crate) fn describe() {
    #[cfg(feature = "metrics")]
    redlock_core::metrics::describe(crate::metrics::ALL);
}
