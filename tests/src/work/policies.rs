use std::time::Duration;

use redlock_cron::{Delivery, OnLost, Overlap, SingletonJob};
use serde::{Deserialize, Serialize};

/// What becomes of a job's runs, where it is not what it is by default.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Policies {
    /// What becomes of a tick that comes while a run goes on.
    pub overlap: OverlapPolicy,
    /// The most runs of one tick, if there may be several.
    pub max_attempts: Option<u32>,
    /// Whether a run is only told that its lease is lost.
    pub signal: bool,
    /// The longest that a run may take.
    pub max_runtime: Option<Duration>,
    /// How long after a tick it may be started.
    pub start_within: Option<Duration>,
    /// How long a run that is told to stop goes on; it does not listen otherwise.
    pub stops_in: Option<Duration>,
}

/// As [`Overlap`].
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub enum OverlapPolicy {
    /// The tick is skipped.
    #[default]
    Skip,
    /// The tick waits.
    Wait,
    /// The run is told to stop.
    CancelOther,
    /// Both go on.
    Allow,
    /// Up to so many go on.
    UpTo(usize),
}

impl Policies {
    pub(super) fn apply(self, mut job: SingletonJob) -> SingletonJob {
        job = job.overlap(match self.overlap {
            OverlapPolicy::Skip => Overlap::Skip,
            OverlapPolicy::Wait => Overlap::Wait,
            OverlapPolicy::CancelOther => Overlap::CancelOther,
            OverlapPolicy::Allow => Overlap::Allow,
            OverlapPolicy::UpTo(most) => Overlap::UpTo(most),
        });
        if let Some(max_attempts) = self.max_attempts {
            job = job.delivery(Delivery::AtLeastOnce { max_attempts });
        }
        if self.signal {
            job = job.on_lost(OnLost::Signal);
        }
        if let Some(limit) = self.max_runtime {
            job = job.max_runtime(limit);
        }
        if let Some(limit) = self.start_within {
            job = job.start_within(limit);
        }
        job
    }
}
