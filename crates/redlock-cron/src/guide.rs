//! Guides: one page for each question that a service with jobs comes to.
//!
//! | page | answers |
//! |---|---|
//! | [`billing`] | How is each day's work done, once, whatever fails? |
//! | [`testing`] | How are jobs tested without a server, and without waiting for the night? |
//!
//! The code of each page is compiled and run with this crate's tests.

/// Jobs for billing.
#[cfg_attr(feature = "test-util", doc = include_str!("../docs/guide/billing.md"))]
pub mod billing {}

/// Tests of jobs, without a server and without waiting; with the feature `test-util`.
#[cfg_attr(feature = "test-util", doc = include_str!("../docs/guide/testing.md"))]
pub mod testing {}
