//! The metrics of layers, by name; with the feature `metrics`.
//!
//! How long requests wait for their locks and hold them is in the metrics of `redlock-core`, by the class of the lock.

use redlock_core::metrics::{Kind, Metric, Unit};

/// All metrics of this crate.
pub const ALL: &[Metric] = &[Metric::new(
    "redlock_http_requests_total",
    Kind::Counter,
    Unit::Count,
    &["outcome"],
    "HTTP requests that were answered, by outcome; one whose body is cut off later counts as lost too.",
)];
