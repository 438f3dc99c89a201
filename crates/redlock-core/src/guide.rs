//! Guides: one page for each question that a new user comes with.
//!
//! | page | answers |
//! |---|---|
//! | [`migration`] | What is called what, for those who know `rslock`, `redlock`, Redisson or ShedLock? |
//!
//! The code of each page is compiled and run with this crate's tests.

/// Coming from another library.
#[doc = include_str!("../docs/guide/migration.md")]
pub mod migration {}
