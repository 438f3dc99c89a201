//! A request's lease as its handler has it, and what becomes of the request when it is lost.

mod owned;
mod policy;
mod request_lease;

pub(crate) use self::request_lease::{GuardCell, ReleaseReason};
pub use self::{
    owned::{LeaseTaken, OwnedLease},
    policy::{Hold, LossPolicy},
    request_lease::RequestLease,
};
