//! Guides: one page for each question about services with jobs.
//!
//! | page | answers |
//! |---|---|
//! | [`billing`] | How does a job do each day's work once, whatever fails? |
//! | [`testing`] | How does a test run jobs without a server, and without a wait for the night? |
//!
//! The tests of this crate compile and run the code of each page.

/// Jobs for billing.
#[cfg_attr(feature = "test-util", doc = include_str!("../docs/guide/billing.md"))]
pub mod billing {}

/// Tests of jobs, without a server and without waiting; with the feature `test-util`.
#[cfg_attr(feature = "test-util", doc = include_str!("../docs/guide/testing.md"))]
pub mod testing {}
