//! What is told and remembered of ticks and runs: the report of each tick, and the status of a job.

mod journal;
mod observer;
mod outcome;
mod report;
mod shutdown;
mod status;
mod status_text;

pub(crate) use self::{
    journal::Journal,
    observer::{Observer, OutcomeHook},
    report::Measured,
};
pub use self::{
    outcome::Outcome,
    report::TickReport,
    shutdown::{ShutdownReport, UnfinishedRun},
    status::{JobStatus, PastRun},
};
