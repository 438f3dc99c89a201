//! The control of a job by a person: pause it, resume it, run it now, look at it, forget it.

mod actions;
mod backfills;
mod error;
mod expectation;
mod inspect;
mod log;
mod moment;
mod registration;
mod remote;
mod requests;

#[cfg(test)]
pub(crate) use self::inspect::newest_first;
pub(crate) use self::{actions::OperatorCommand, requests::answer_bell};
pub use self::{
    backfills::BACKFILL_LIFETIME,
    error::{ControlError, ControlErrorKind},
    inspect::inspect,
    log::{LoggedAction, actions, log_action},
    remote::{
        cancel_backfill, dangerous_forget, job_remembered_under, pause, pause_with,
        remembered_under, request_backfill, request_backfill_of_days, request_rerun, request_run,
        resume, resume_with, stop,
    },
};
