//! The records of ticks and runs: the report of each tick, and the status of a job.

mod backfill;
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
    backfill::{ALREADY_OK, BackfillEntry, key_of_tick, keys_of_ticks, moment_of_tick},
    expectation::{Conclusion, ExpectationLooks, SwitchState, ended_at},
    memory::is_unstarted,
    observer::{Observer, OutcomeHook, StartHook, guarded},
    report::Measured,
    status::Journal,
};
pub use self::{
    backfill::{Backfill, MOST_BACKFILLED},
    memory::{InUse, JobMemory, PastRun},
    outcome::Outcome,
    report::{ShutdownReport, TickReport, UnfinishedRun},
    status::JobStatus,
};
