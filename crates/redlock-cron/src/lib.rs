#![doc = include_str!("../docs/crate.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod control;
mod error;
mod job;
mod record;
mod replica;
mod schedule;
mod scheduler;
#[cfg(test)]
mod tests;
mod tick;

pub use self::{
    control::{
        BACKFILL_LIFETIME, ControlError, ControlErrorKind, LoggedAction, actions, cancel_backfill,
        dangerous_forget, inspect, job_remembered_under, log_action, pause, pause_with,
        remembered_under, request_backfill, request_backfill_of_days, request_rerun, request_run,
        resume, resume_with, stop,
    },
    error::{SetupError, SetupErrorKind},
    job::{
        BoxError, Delivery, JobConfig, Missed, OnLost, Overlap, REQUEST_LIFETIME, Run,
        SingletonJob, Tries, Trigger,
    },
    record::{
        Action, Backfill, InUse, JobMemory, JobPause, JobRegistration, JobStatus, MOST_BACKFILLED,
        Outcome, PastRun, ShutdownReport, TickReport, UnclaimedTicks, UnfinishedRun,
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

pub mod guide {
    //! Guides: one page for each question about services with jobs.
    //!
    //! | page | answers |
    //! |---|---|
    //! | [`policies`] | Which settings does a job need, and what becomes of missed ticks? |
    //! | [`schedules`] | When is a job due, also on the days when clocks change? |
    //! | [`operation`] | What can an operator do, and what is measured? |
    //! | [`billing`] | How does a job do each day's work once, whatever fails? |
    //! | [`testing`] | How does a test run jobs without a server, and without a wait for the night? |
    //! | [`others`] | How does it compare, and how does it go with tokio-cron-scheduler? |
    //!
    //! The tests of this crate compile and run the code of each page.

    #[doc = include_str!("../docs/guide/policies.md")]
    pub mod policies {}

    #[doc = include_str!("../docs/guide/schedules.md")]
    pub mod schedules {}

    #[doc = include_str!("../docs/guide/operation.md")]
    pub mod operation {}

    #[doc = include_str!("../docs/guide/others.md")]
    pub mod others {}

    /// Jobs for billing.
    #[cfg_attr(feature = "test-util", doc = include_str!("../docs/guide/billing.md"))]
    pub mod billing {}

    /// Tests of jobs, without a server and without waiting; with the feature `test-util`.
    #[cfg_attr(feature = "test-util", doc = include_str!("../docs/guide/testing.md"))]
    pub mod testing {}
}

/// The target of this crate's events and spans, which stays as it is.
const TARGET: &str = "redlock::job";

// Their types are in this crate's signatures.
pub use chrono;
pub use chrono_tz;
pub use redlock_core;
#[cfg(feature = "tokio-cron-scheduler")]
pub use tokio_cron_scheduler;

// What the README shows compiles, and runs.
#[cfg(doctest)]
mod readme {
    #![doc = include_str!("../README.md")]
}
