//! The records of ticks and runs: the report of each tick, and the status of a job.

mod expectation;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod observer;
mod outcome;
mod report;
mod status;

#[cfg(feature = "metrics")]
pub use self::metrics::ALL as METRICS;
pub(crate) use self::{
    expectation::{Conclusion, ExpectationLooks, SwitchState, ended_at},
    memory::is_unstarted,
    observer::{Observer, OutcomeHook, StartHook, guarded},
    report::Measured,
    status::Journal,
};
pub use self::{
    memory::{InUse, JobMemory, PastRun},
    outcome::Outcome,
    report::{ShutdownReport, TickReport, UnfinishedRun},
    status::JobStatus,
};
