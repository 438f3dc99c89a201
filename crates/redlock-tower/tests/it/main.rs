//! The layer, over nodes in memory; the package of tests has it over real servers.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod behaviour;
