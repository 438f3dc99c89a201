//! What is counted, with the feature `metrics`.

/// What became of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    /// The inner service answered it, under its lock.
    Served,
    /// The inner service answered it, and it needed no lock.
    Unlocked,
    Contended,
    Key,
    Overloaded,
    Unavailable,
    Closed,
    Lost,
    Misuse,
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
        Told::Contended => outcome!("contended"),
        Told::Key => outcome!("key"),
        Told::Overloaded => outcome!("overloaded"),
        Told::Unavailable => outcome!("unavailable"),
        Told::Closed => outcome!("closed"),
        Told::Lost => outcome!("lost"),
        Told::Misuse => outcome!("misuse"),
    };
    counter.increment(1);
}

/// Tells the recorder what the metrics mean.
pub(crate) fn describe() {
    #[cfg(feature = "metrics")]
    redlock_core::metrics::describe(crate::metrics::ALL);
}
