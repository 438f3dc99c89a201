//! A job as it is given to a scheduler: its name, its policies, and what it does.

mod builder;
mod config;
mod fingerprint;
mod identity;
mod policy;
mod run;
mod settings;
mod singleton_job;
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
    terms::{MOST_ATTEMPTS, Terms},
    work::{Condition, Work},
};
