//! The part of a lease that a caller has: a guard, the claim of a tick, and the scopes in which it has them.

pub(crate) mod acquire_span;
mod claim;
mod lock_guard;
pub(crate) mod scope;

pub use self::{
    claim::{Claim, ClaimOptions, ClaimOutcome, JobReading},
    lock_guard::LockGuard,
    scope::Scope,
};
