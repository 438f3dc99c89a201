//! The driver: it owns the connections, the timers and every unfinished piece of business, on a
//! thread of its own, and asks the protocol what to do.
//!
//! Callers send [`Command`]s and await an answer; nothing they do or stop doing can leave the driver's
//! state half-changed.
//! A caller that goes away is noticed by what it drops: an unanswered [`Pending`] abandons its
//! acquisition, a [`Holding`] releases its lease.

mod acquisitions;
mod command;
mod driver;
mod flow;
mod holding;
mod leases;
mod link;
mod owed;
mod round;
mod tasks;
mod timers;

pub(crate) use self::{
    command::{AcquireRequest, EngineHandle},
    driver::EngineConfig,
    holding::Holding,
    link::{LinkConfig, LinkState},
    tasks::{Placement, start},
};
