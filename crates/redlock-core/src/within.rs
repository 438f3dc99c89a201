//! The leases under which the code of this thread runs at this moment.
//!
//! An acquire under a lease on the same resource would wait for itself.
//! Two acquires, each under a lease on the resource that the other wants, would wait for each other.
//! The client cannot tell tasks apart from outside, but a lease polls the work that runs under it.

use std::cell::RefCell;

use redlock_proto::Ticket;

use crate::{Lease, ResourceKeys};

thread_local! {
    static LEASES: RefCell<Vec<Lease>> = const { RefCell::new(Vec::new()) };
}

impl Lease {
    /// Calls `work` as work under this lease.
    ///
    /// While the lease is held, an acquire of the same resource in `work`, by the same client, fails at once as
    /// [`AlreadyHeld`](crate::AcquireErrorKind::AlreadyHeld).
    /// It is meant for middleware that polls such work by itself, as [`run`](Self::run) does.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::AcquireErrorKind;
    /// use std::{future::poll_fn, pin::pin};
    ///
    /// let guard = redlock.acquire("report").await?;
    /// let mut work = pin!(redlock.acquire("report"));
    /// let done = poll_fn(|cx| guard.lease().within(|| work.as_mut().poll(cx))).await;
    /// assert_eq!(done.unwrap_err().kind(), AcquireErrorKind::AlreadyHeld);
    /// # Ok(())
    /// # }
    /// ```
    pub fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        LEASES.with_borrow_mut(|leases| leases.push(self.clone()));
        let _end = End;
        work()
    }
}

/// Returns whether this code runs under a lease of this client on one of `keys`.
pub(crate) fn holds(client: u64, keys: &ResourceKeys) -> bool {
    let is_on_one = |lease: &Lease| keys.iter().any(|key| lease.keys().contains(key));
    LEASES.with_borrow(|leases| {
        let mut leases = leases.iter();
        leases.any(|lease| lease.client() == client && is_on_one(lease) && lease.is_held())
    })
}

/// Returns the places in the local queue of the leases of this client under which this code runs.
pub(crate) fn places(client: u64) -> Vec<Ticket> {
    LEASES.with_borrow(|leases| {
        let held = leases.iter();
        let held = held.filter(|lease| lease.client() == client && lease.is_held());
        held.filter_map(Lease::place).collect()
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
