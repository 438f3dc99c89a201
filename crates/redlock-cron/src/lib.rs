#![doc = include_str!("../docs/crate.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod control;
mod error;
pub mod guide;
mod job;
mod pulse;
mod record;
mod replica;
mod schedule;
mod scheduler;
#[cfg(test)]
mod tests;
mod tick;

pub use self::{
    control::{
        ControlError, ControlErrorKind, dangerous_forget, inspect, job_remembered_under, pause,
        remembered_under, resume,
    },
    error::{SetupError, SetupErrorKind},
    job::{
        BoxError, Delivery, JobConfig, Missed, OnLost, Overlap, Run, SingletonJob, Tries, Trigger,
    },
    record::{
        InUse, JobMemory, JobStatus, Outcome, PastRun, ShutdownReport, TickReport, UnfinishedRun,
    },
    schedule::{Schedule, Zone},
    scheduler::{SingletonScheduler, SingletonSchedulerBuilder},
};

#[cfg(feature = "test-util")]
pub use self::clock::JobClock;

#[cfg(feature = "metrics")]
pub mod metrics {
    //! The metrics of a scheduler, by name; with the feature `metrics`.
    //!
    //! The scheduler reports each value to the recorder that is installed at the time.

    pub use crate::record::METRICS as ALL;
}

/// The target of this crate's events and spans, which stays as it is.
const TARGET: &str = "redlock::job";

// Their types are in this crate's signatures.
pub use chrono;
pub use chrono_tz;
pub use redlock_core;
pub use tokio_cron_scheduler;

// What the README shows compiles, and runs.
#[cfg(doctest)]
mod readme {
    #![doc = include_str!("../README.md")]
}
