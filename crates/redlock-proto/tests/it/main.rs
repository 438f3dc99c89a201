//! The protocol: its parts by themselves, and the client, event by event, over the model of its nodes.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod attempt;
mod clients;
mod clocks;
mod extension;
mod lease;
mod outages;
mod store;
mod survey;
mod votes;
