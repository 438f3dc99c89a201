//! The protocol, event by event over the model of its nodes.

mod client;
mod clients;
mod outages;
mod overload;
