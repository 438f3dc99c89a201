//! The driver: it owns the connections, the timers and every unfinished piece of business, on a
//! thread of its own, and does what the protocol's state machine says.
//!
//! Callers send [`Command`]s and await an answer.
//! They leave word of leases that change hands among them, which the driver finds when it wakes.
//! Nothing they do or stop doing can leave the driver's state half-changed.
//! A caller that goes away is noticed by what it drops: an unanswered [`Pending`] abandons its
//! acquisition, a [`Holding`] releases its lease.

mod alarm;
mod answers;
mod asked;
mod command;
mod common;
mod driver;
mod effects;
mod entropy;
mod hand_overs;
mod holding;
mod link;
mod log;
mod look;
mod measure;
mod patience;
mod tasks;
mod watched;

pub(crate) use self::{
    command::{AcquireRequest, NotWon},
    driver::EngineConfig,
    holding::{Holding, Parked, Won},
    link::LinkState,
    log::Origin,
    look::Looked,
    tasks::{Placement, start},
};

/// The callers' end of the driver.
pub(crate) type EngineHandle = command::EngineHandle<Won>;
