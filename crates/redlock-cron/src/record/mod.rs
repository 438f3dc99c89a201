//! The records of ticks and runs: the report of each tick, and the status of a job.

mod journal;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod observer;
mod outcome;
mod report;
mod shutdown;
mod status;

#[cfg(feature = "metrics")]
pub use self::metrics::ALL as METRICS;
pub(crate) use self::{
    journal::Journal,
    observer::{Observer, OutcomeHook, StartHook, guarded},
    report::Measured,
};
pub use self::{
    memory::{InUse, JobMemory, PastRun},
    outcome::Outcome,
    report::TickReport,
    shutdown::{ShutdownReport, UnfinishedRun},
    status::JobStatus,
};
