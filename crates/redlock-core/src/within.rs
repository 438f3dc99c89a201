//! The leases under which the code of this thread runs at this moment.
//!
//! An acquire that is made under a lease on the same resource would wait for itself.
//! Tasks cannot be told apart from outside, but what runs under a lease is polled by it.

use std::cell::RefCell;

use crate::{Lease, ResourceKey};

thread_local! {
    static LEASES: RefCell<Vec<Lease>> = const { RefCell::new(Vec::new()) };
}

impl Lease {
    /// Calls `work` as work under this lease: an acquire of the same resource that is made in it, by the same client,
    /// fails at once as [`AlreadyHeld`](crate::AcquireErrorKind::AlreadyHeld) while the lease is held.
    ///
    /// For middleware that polls such work by itself; [`run`](Self::run) does so.
    pub fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        LEASES.with_borrow_mut(|leases| leases.push(self.clone()));
        let _end = End;
        work()
    }
}

/// Whether this code runs under a lease of this client on `key`.
pub(crate) fn holds(client: u64, key: &ResourceKey) -> bool {
    LEASES.with_borrow(|leases| {
        let mut leases = leases.iter();
        leases.any(|lease| lease.client() == client && lease.key() == key && lease.is_held())
    })
}

/// Ends the innermost scope, also when its work panics.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        let ended = LEASES.with_borrow_mut(Vec::pop);
        // What the lease owns may be dropped here, so not while it is borrowed.
        drop(ended);
    }
}
