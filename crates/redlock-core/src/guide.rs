//! Guides: one page for each question that a new user comes with.
//!
//! | page | answers |
//! |---|---|
//! | [`migration`] | How does a running service change its library, and what are the parts of `rslock`, `redlock`, Redisson and ShedLock called here? |
//!
//! The code of each page is compiled and run with this crate's tests.

/// Coming from another library.
#[doc = include_str!("../docs/guide/migration.md")]
pub mod migration {}
