//! The console of a lock: what its nodes know, for an operator, as a page, as JSON, and as the source of `redlock top`.

mod access;
#[doc(hidden)]
pub mod look;
pub(crate) mod page;
pub mod snapshot;

pub use self::{access::Access, snapshot::Snapshot};
