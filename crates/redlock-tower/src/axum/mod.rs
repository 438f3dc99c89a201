//! Extractors for handlers of axum.

mod lease;
mod locked;
mod rejection;

pub use self::{
    lease::MissingLease,
    locked::{Locked, LockedRejection},
};
