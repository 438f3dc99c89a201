//! The job adapter, over nodes in memory.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod control;
mod data;
#[cfg(feature = "test-util")]
mod fleet;
#[cfg(feature = "test-util")]
mod job_clock;
#[cfg(feature = "test-util")]
mod logged;
mod pulse;
mod schedule;
mod service;
mod setup;
