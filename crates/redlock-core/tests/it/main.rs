//! The client, over real servers and over nodes in memory.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod bad_input;
mod configuration;
mod configured_nodes;
mod conformance;
mod delayed_restart;
mod differential;
mod marks;
mod paused_time;
mod scopes_on_threads;
mod wrong_names;
mod wrong_servers;
