//! The backoff after a run whose process crashed, so that a tick which kills processes does not kill one replica after
//! the other.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

/// The run after which this replica pauses, and until when.
#[derive(Debug, Default)]
pub(crate) struct Backoff(Mutex<Option<Pause>>);

#[derive(Clone, Copy, Debug)]
struct Pause {
    tick: DateTime<Utc>,
    attempt: u32,
    until: Instant,
}

impl Backoff {
    /// Returns whether the run after the `attempt`-th of a tick must wait, after `crashes` runs of the tick crashed.
    ///
    /// The pause begins when this is asked first: ten seconds after the first crash, and twice as long after each further
    /// one, but at most half of what is `left` of the time in which the tick may be started again.
    pub(crate) fn goes_on(
        &self,
        tick: DateTime<Utc>,
        attempt: u32,
        crashes: u32,
        left: Duration,
    ) -> bool {
        let now = Instant::now();
        // Nothing panics while the lock is held.
        let mut pause = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = pause.filter(|pause| (pause.tick, pause.attempt) == (tick, attempt));
        let Pause { until, .. } = begun.unwrap_or_else(|| {
            let doubled = crashes.saturating_sub(1).min(16);
            let length = (FIRST * (1 << doubled)).min(left / 2);
            let until = now + length;
            *pause.insert(Pause {
                tick,
                attempt,
                until,
            })
        });
        now < until
    }
}

const FIRST: Duration = Duration::from_secs(10);
