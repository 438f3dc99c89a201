//! Servers that the sandbox starts, kills, freezes and whose clocks it sets.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod clock;
mod clocked;
mod compose;
mod delayed_restart;
mod expiry;
mod lifecycle;
mod members;
mod orphans;
