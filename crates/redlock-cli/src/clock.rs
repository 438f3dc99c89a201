//! The clocks that measurements are taken by; no deadline of a lease rests on them.

#![expect(
    clippy::disallowed_methods,
    reason = "what is measured here is shown, and nothing depends on it"
)]

use std::time::{Duration, Instant, SystemTime};

/// Returns the present moment, to measure from.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns what this machine's wall clock shows, as the time since 1970.
pub(crate) fn wall() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}
