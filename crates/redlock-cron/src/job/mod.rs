//! A job as it is given to a scheduler: its name, its policies, and what it does.

// First, so that the documentation of a job begins with how it is made.
mod singleton_job;

mod builder;
mod config;
mod fingerprint;
mod identity;
mod policy;
mod run;
mod settings;
mod terms;
mod tries;
mod work;

pub use self::{
    config::JobConfig,
    policy::{Delivery, Missed, OnLost, Overlap, Trigger},
    run::Run,
    singleton_job::SingletonJob,
    tries::Tries,
    work::BoxError,
};
pub(crate) use self::{
    fingerprint::{Fingerprint, is_made_up},
    identity::{JobId, Namespace},
    terms::{LONGEST_WINDOW, MOST_RUNS, Terms},
    work::{Condition, Work},
};
