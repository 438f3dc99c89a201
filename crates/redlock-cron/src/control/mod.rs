//! What a person does to a job: pause it, resume it, run it now, look at it.

mod actions;
mod error;
mod inspect;
mod remote;
mod status;

pub use self::{
    error::{ControlError, ControlErrorKind},
    inspect::inspect,
    remote::{job_remembered_under, pause, remembered_under, resume},
};
