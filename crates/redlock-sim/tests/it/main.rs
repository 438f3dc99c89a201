//! The simulated world: its judge, its plans, and the kit.

mod checker;
#[cfg(feature = "client")]
mod kit;
mod usage;
mod worlds;
