//! The scopes in which the code of this thread runs at this moment, and the leases under which it runs.
//!
//! An acquire under a lease on the same resource would wait for itself.
//! Two acquires, each under a lease on the resource that the other wants, would wait for each other.
//! The client cannot tell tasks apart from outside, but a scope and a lease poll the work that runs in them.

use std::cell::RefCell;

use redlock_proto::Ticket;

use super::Scope;
use crate::{Lease, ResourceKeys};

thread_local! {
    /// The outermost is the first.
    static SURROUNDINGS: RefCell<Vec<Surrounding>> = const { RefCell::new(Vec::new()) };
}

/// A scope in which code runs, or a lease under which it runs.
pub(super) enum Surrounding {
    Scope(Scope),
    Lease(Lease),
}

/// Calls `work` in this surrounding.
pub(super) fn within<R>(surrounding: Surrounding, work: impl FnOnce() -> R) -> R {
    SURROUNDINGS.with_borrow_mut(|all| all.push(surrounding));
    let _leave = Leave;
    work()
}

/// Leaves the innermost surrounding, also when its work panics.
struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        let left = SURROUNDINGS.with_borrow_mut(Vec::pop);
        // What a lease or a scope owns may be dropped here, so not while all are borrowed.
        drop(left);
    }
}

impl Lease {
    /// Calls `work` as work under this lease.
    ///
    /// While the lease is held, an acquire of the same resource in `work`, by the same client, fails at once as
    /// [`AlreadyHeld`](crate::AcquireErrorKind::AlreadyHeld).
    /// It is meant for middleware that polls such work by itself, as [`run`](Self::run) does.
    pub fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        within(Surrounding::Lease(self.clone()), work)
    }
}

/// Returns the scopes of a client in which this code runs, the outermost first.
pub(crate) fn current(client: u64) -> Vec<Scope> {
    SURROUNDINGS.with_borrow(|all| {
        let scopes = all.iter().filter_map(|surrounding| match surrounding {
            Surrounding::Scope(scope) if scope.goes_on_for(client) => Some(scope.clone()),
            _ => None,
        });
        scopes.collect()
    })
}

/// Returns whether this code runs under a lease of this client on one of `keys`.
pub(crate) fn holds(client: u64, keys: &ResourceKeys) -> bool {
    let is_on_one = |lease: &Lease| keys.iter().any(|key| lease.keys().contains(key));
    SURROUNDINGS.with_borrow(|all| leases(all, client).any(is_on_one))
}

/// Returns the places in the local queue of the leases of this client under which this code runs.
pub(crate) fn places(client: u64) -> Vec<Ticket> {
    SURROUNDINGS.with_borrow(|all| leases(all, client).filter_map(Lease::place).collect())
}

/// Returns the valid leases of a client among these.
fn leases(all: &[Surrounding], client: u64) -> impl Iterator<Item = &Lease> {
    all.iter().filter_map(move |surrounding| match surrounding {
        Surrounding::Lease(lease) if lease.client() == client && lease.is_held() => Some(lease),
        _ => None,
    })
}
