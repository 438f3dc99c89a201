//! The layer, over nodes in memory and over real servers.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod behaviour;
