//! The console of a lock: what its nodes know, for an operator, as a page, as JSON, and as the source of `redlock top`.

mod access;
mod console;
mod filter;
mod hub;
#[doc(hidden)]
pub mod look;
mod page;
mod server;
pub mod snapshot;

pub use self::{
    access::Access,
    console::{Console, ConsoleBuilder, ConsoleError},
    server::router,
    snapshot::Snapshot,
};
