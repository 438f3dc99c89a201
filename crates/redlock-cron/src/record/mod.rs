//! The records of ticks and runs: the report of each tick, and the status of a job.

mod action;
mod backfill;
mod expectation;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod outcome;
mod past_run;
mod registration;
mod report;
mod reporter;
mod status;

#[cfg(feature = "metrics")]
pub use self::metrics::ALL as METRICS;
pub(crate) use self::{
    action::operator_of,
    backfill::{ALREADY_OK, BackfillEntry, CANCELLED, USED_UP, is_cancelled, moment_of_tick},
    expectation::{Conclusion, ExpectationLooks, KeptRuns, SwitchState, ended_at},
    outcome::{cut_short_outcomes, end_of, is_outcome},
    past_run::{is_unstarted, line_of},
    registration::{OwnRegistration, REGISTERED},
    report::Measured,
    reporter::{OutcomeHook, Reporter, StartHook, guarded},
    status::Journal,
};
pub use self::{
    action::{Action, JobPause},
    backfill::MOST_BACKFILLED,
    memory::{Backfill, InUse, JobMemory, UnclaimedTicks},
    outcome::Outcome,
    past_run::PastRun,
    registration::JobRegistration,
    report::{ShutdownReport, TickReport, UnfinishedRun},
    status::JobStatus,
};
