//! A reader that becomes a writer.

use std::sync::Arc;

use super::{HeldLease, LockGuard};
use crate::{AcquireError, Mode, course, engine::NotWon};

impl LockGuard {
    /// Makes a shared lease an exclusive one, if no other reader shares the resource at the moment: one attempt.
    ///
    /// A reader calls it that has found something to write: no writer holds the resource between the two leases.
    /// It does not wait for other readers: two readers that waited to become writers would wait for each other.
    /// A reader that cannot upgrade releases its lease, acquires an exclusive one, and reads again.
    /// A writer that waits already does not prevent the upgrade; it waits for the exclusive lease too.
    ///
    /// The exclusive lease is a lease of its own, on the same keys and with the same options.
    /// Its [token](Self::token) is greater than those of all leases before it, also of the shared one.
    /// It has a new time to live, and ends when the shared lease would by its
    /// [`max_hold`](crate::AcquireOptions::max_hold).
    /// The views of the shared lease report it as released: take another [view](Self::lease).
    /// The client releases the shared lease as soon as it has the exclusive one.
    /// It hands the exclusive lease over to no caller.
    ///
    /// A guard whose lease is exclusive already stays as it is.
    ///
    /// # Errors
    ///
    /// After an error the guard still has the shared lease, as long as that is valid.
    ///
    /// - [`Contended`](crate::AcquireErrorKind::Contended): another reader shares the resource, in this process or
    ///   another; or the lease has other guards; or nodes have not heard yet that an earlier upgrade was given up, or that
    ///   the lease was downgraded.
    /// - [`NoQuorum`](crate::AcquireErrorKind::NoQuorum), [`Quarantined`](crate::AcquireErrorKind::Quarantined): too few
    ///   nodes granted it.
    /// - [`Expired`](crate::AcquireErrorKind::Expired): the shared lease was over before the exclusive one was won, so a
    ///   writer may have held the resource in between.
    /// - [`Closed`](crate::AcquireErrorKind::Closed): the client was closed.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the guard holds the shared lease.
    /// The client releases in the background what a node has granted or will grant.
    /// Until the nodes have heard of that, they may refuse other readers, and another upgrade.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::{AcquireErrorKind, Mode};
    ///
    /// let mut guard = redlock.acquire_shared("catalogue").await?;
    /// // Read it, and find it out of date.
    /// match guard.try_upgrade().await {
    ///     Ok(()) => assert_eq!(guard.mode(), Mode::Exclusive), // Write it, alone.
    ///     Err(error) if error.kind() == AcquireErrorKind::Contended => { /* others read it too */ }
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_upgrade(&mut self) -> Result<(), AcquireError> {
        if self.mode() == Mode::Exclusive {
            return self.still_held();
        }
        // No reader joins the shared lease as long as it may be upgraded.
        let only = Only::guard_of(&self.held).ok_or_else(AcquireError::contended_locally)?;
        let upgrade = self.held.upgrade().ok_or_else(AcquireError::expired)?;
        let upgraded = Self::without_turn(upgrade.await.map_err(NotWon::into_error)?);
        // The shared lease must still be valid now: otherwise another client may have had the resource in between.
        upgraded.still_held()?;
        self.still_held()?;
        let lease = upgraded.lease();
        upgraded.watch(|| course::hold(lease.client(), lease.class(), lease.token()));
        self.held.give_place_to(&upgraded.held);
        *self = upgraded;
        drop(only);
        Ok(())
    }

    fn still_held(&self) -> Result<(), AcquireError> {
        if self.is_held() {
            Ok(())
        } else {
            Err(AcquireError::expired())
        }
    }
}

/// The only guard of its lease, until this is dropped.
struct Only(Arc<HeldLease>);

impl Only {
    /// `None` if the lease has other guards.
    fn guard_of(held: &Arc<HeldLease>) -> Option<Self> {
        held.keep_to_one().then(|| Self(Arc::clone(held)))
    }
}

impl Drop for Only {
    fn drop(&mut self) {
        self.0.let_others_come();
    }
}
