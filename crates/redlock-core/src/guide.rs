//! Guides: one page for each question that a user comes with.
//!
//! The code of each page is compiled and run with this crate's tests.

/// Lines of callers, fairness, the length of a wait, and how many nodes an acquire asks.
#[doc = include_str!("../docs/guide/waiting.md")]
pub mod waiting {}

/// Several keys, shared leases, slots, scopes, elections, and claims of jobs.
#[doc = include_str!("../docs/guide/locks.md")]
pub mod locks {}

/// Servers and the rights of their users, restarts, and versions of the stored data.
#[doc = include_str!("../docs/guide/servers.md")]
pub mod servers {}

/// Errors, events, spans and metrics.
#[doc = include_str!("../docs/guide/observing.md")]
pub mod observing {}

/// Coming from another library.
#[doc = include_str!("../docs/guide/migration.md")]
pub mod migration {}
