//! A job as it is given to a scheduler: its name, its policies, and what it does.

// First, so that the documentation of a job begins with how it is made.
mod singleton_job;

mod builder;
mod config;
mod fingerprint;
mod identity;
mod policy;
mod run;
pub(crate) mod series;
mod settings;

pub use self::{
    config::JobConfig,
    policy::{Delivery, Missed, OnLost, Overlap, Tries, Trigger},
    run::Run,
    series::REQUEST_LIFETIME,
    singleton_job::{BoxError, SingletonJob},
};
pub(crate) use self::{
    fingerprint::{Fingerprint, is_made_up},
    identity::{JobId, JobNamespace},
    settings::{JobSettings, LONGEST_WINDOW, MOST_RUNS, early},
    singleton_job::{Condition, Work},
};
