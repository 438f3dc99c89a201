//! The control of a job by a person: pause it, resume it, run it now, look at it, forget it.

mod actions;
mod error;
mod expectation;
mod inspect;
mod remote;

#[cfg(test)]
pub(crate) use self::inspect::newest_first;
pub use self::{
    error::{ControlError, ControlErrorKind},
    inspect::inspect,
    remote::{dangerous_forget, job_remembered_under, pause, remembered_under, resume},
};
