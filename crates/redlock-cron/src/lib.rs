#![doc = include_str!("../docs/crate.md")]

mod attach;
mod backlog;
mod builder;
mod catch_up;
mod claim;
mod clock;
mod clock_watch;
mod control;
mod control_error;
mod course;
mod due;
mod error;
mod execution;
mod fingerprint;
mod identity;
mod job;
mod journal;
mod observer;
mod policy;
mod random;
mod replica;
mod report;
mod run;
mod runner;
mod schedule;
mod scheduler;
mod stand_by;
mod status;
mod status_text;
mod switch;
mod tasks;
mod terms;
#[cfg(test)]
mod tests;
mod turns;
mod zone;

pub use self::{
    builder::SingletonSchedulerBuilder,
    control_error::{ControlError, ControlErrorKind},
    error::{SetupError, SetupErrorKind},
    job::{BoxError, SingletonJob},
    policy::{Delivery, Missed, OnLost, Overlap, Trigger},
    report::{Outcome, ShutdownReport, TickReport, UnfinishedRun},
    run::Run,
    scheduler::SingletonScheduler,
    status::{JobStatus, PastRun},
    zone::Zone,
};

/// The target of this crate's events and spans, which stays as it is.
const TARGET: &str = "redlock::job";

// Their types are in this crate's signatures.
pub use chrono;
pub use chrono_tz;
pub use redlock_core;
pub use tokio_cron_scheduler;
