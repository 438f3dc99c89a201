use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use redlock_core::Lease;

/// What a job is told about the run it is asked to do.
#[derive(Clone, Debug)]
pub struct Run {
    name: Arc<str>,
    tick: DateTime<Utc>,
    lag: Duration,
    lease: Lease,
}

impl Run {
    pub(crate) fn new(name: Arc<str>, tick: DateTime<Utc>, lag: Duration, lease: Lease) -> Self {
        Self {
            name,
            tick,
            lag,
            lease,
        }
    }

    /// The job's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The scheduled instant, in whole seconds: the same on whichever replica it runs, however late.
    ///
    /// What belongs to "this" run should be derived from it, not from the time of day: after a delay
    /// past midnight, yesterday's books are still those of the tick.
    pub fn tick(&self) -> DateTime<Utc> {
        self.tick
    }

    /// How long after the tick the run was started, on this replica's clock.
    pub fn lag(&self) -> Duration {
        self.lag
    }

    /// A view of the lease that the run holds.
    ///
    /// The run is dropped when it is lost; work that blocks its thread cannot be, and must ask
    /// [`Lease::is_held`] before each step that matters.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }
}
