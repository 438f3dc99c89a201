//! The nodes' time of day, as a replica knows it.
//!
//! The replica's own wall clock plays no part in it once the nodes are known: a wall clock may be set at any moment, also
//! while a task sleeps.
//! Between two looks, the time goes on by a clock that cannot be set.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

/// The time that the nodes' clocks showed last, and when.
#[derive(Debug, Default)]
pub(super) struct NodesTime {
    known: Option<(DateTime<Utc>, Instant)>,
    has_jumped: bool,
}

impl NodesTime {
    /// Returns what the nodes' clocks show at `now`; `None` if they were never known.
    pub(super) fn now(&self, now: Instant) -> Option<DateTime<Utc>> {
        let (shown, at) = self.known?;
        let since = TimeDelta::from_std(now.saturating_duration_since(at)).ok()?;
        shown.checked_add_signed(since)
    }

    /// Notes what the nodes' clocks showed at some moment between `asked` and `answered`; `before` is what was expected.
    ///
    /// An expectation that is as good as the answer stays, because this process may have waited for the answer.
    pub(super) fn note(
        &mut self,
        shown: DateTime<Utc>,
        asked: Instant,
        answered: Instant,
        before: DateTime<Utc>,
    ) {
        let took = answered.saturating_duration_since(asked);
        let latest = TimeDelta::from_std(took)
            .ok()
            .and_then(|took| shown.checked_add_signed(took));
        let latest = latest.unwrap_or(shown);
        let now = before.clamp(shown, latest);
        self.has_jumped |= (now - before).abs() > NEGLIGIBLE;
        self.known = Some((now, answered));
    }

    /// Returns whether the time has differed from the expected one since the last call.
    pub(super) fn has_jumped(&mut self) -> bool {
        std::mem::take(&mut self.has_jumped)
    }
}

/// By how much the nodes' time may differ from the expected one before ticks are looked for again.
const NEGLIGIBLE: TimeDelta = TimeDelta::milliseconds(200);

/// The time between two looks at the nodes' clocks while a task waits for an instant of theirs.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
