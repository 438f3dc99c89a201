//! Guides: one page for each question about services with locks.
//!
//! | page | answers |
//! |---|---|
//! | [`placement`] | Where does the layer go, beside CORS, time limits, other locks and WebSockets? |
//! | [`keys`] | How are a path, a user and a method made into one key? |
//! | [`shutdown`] | In which order does a service end, and how does Kubernetes know that it is ready? |
//! | [`testing`] | How are handlers tested without a server? |
//! | [`fencing`] | How does a database refuse a holder that comes too late? |
//!
//! The tests of this crate compile and run the code of each page.

/// Where the layer goes.
#[doc = include_str!("../docs/guide/placement.md")]
pub mod placement {}

/// Keys of several parts.
#[doc = include_str!("../docs/guide/keys.md")]
pub mod keys {}

/// Shutdown and readiness.
#[doc = include_str!("../docs/guide/shutdown.md")]
pub mod shutdown {}

/// Tests without a server.
#[doc = include_str!("../docs/guide/testing.md")]
pub mod testing {}

/// Fencing in SQL.
#[doc = include_str!("../docs/guide/fencing.md")]
pub mod fencing {}
