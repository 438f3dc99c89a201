//! The attempts of a tick that were used up, and the backoff after a run whose process crashed.
//!
//! The backoff keeps a tick which kills processes from killing one replica after the other.

use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use redlock_core::{JobRecord, RunRecord};
use tokio::time::Instant;

use super::ledger::runs_of;
use crate::{Outcome, record::end_of};

/// The numbers of a tick's runs that did not end by themselves.
#[derive(Default)]
pub(super) struct UsedAttempts {
    pub(super) attempts: u32,
    /// How many were dropped without a recorded outcome, for example in a crash.
    pub(super) crashes: u32,
    pub(super) is_last_a_crash: bool,
}

impl UsedAttempts {
    /// Returns the numbers of a tick's runs, all of which were cut short.
    pub(super) fn of(record: &JobRecord, tick: DateTime<Utc>) -> Self {
        let mut used = Self::default();
        for run in runs_of(record, tick).rev() {
            let ended = end_of(run).map_or(RunRecord::DROPPED, |(outcome, _)| outcome);
            used.is_last_a_crash = ended == RunRecord::DROPPED;
            used.crashes += u32::from(used.is_last_a_crash);
            used.attempts += u32::from(!is_by_a_shutdown(ended));
        }
        used
    }
}

/// Returns whether the outcome `ended` is that of a run which a shutdown ended, or the removal of its job.
fn is_by_a_shutdown(ended: &str) -> bool {
    [Outcome::Aborted, Outcome::Draining, Outcome::Removed]
        .iter()
        .any(|outcome| outcome.as_str() == ended)
}

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
        let mut pause = self.0.lock();
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
