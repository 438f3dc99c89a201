//! The compiled command, on real servers in the states that it is to tell apart.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod configuration;
mod doctor;
mod evening;
mod guide;
mod jobs;
mod keys;
mod kit;
mod operate;
mod run;
mod top;
