//! Acquires of readers, which share a key with each other, and the leases that those of one process share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use redlock_proto::{Instant, LeaseTerms, OpenLease};

use super::Redlock;
use crate::{
    AcquireError, AcquireOptions, InvalidKey, LockGuard, ResourceKey, ResourceKeys,
    engine::HeldLease,
};

impl Redlock {
    /// Acquires a lease on `key` that other readers may share, waiting as long as the client's default wait (5 s) if a
    /// writer holds it.
    ///
    /// A reader holds a key by a shared lease, and a writer by an exclusive lease.
    /// Either readers hold a key, or one writer does.
    /// A reader needs a strict majority of nodes on which no writer holds the key.
    /// A writer needs a strict majority of nodes on which neither a reader nor another writer holds it.
    /// A node stores 64 shared leases of a key, which is some 64 processes; the next acquire gets
    /// [`Contended`](crate::AcquireErrorKind::Contended).
    ///
    /// Readers of one process share one lease.
    /// A reader that comes within 10 ms after the client won the lease joins it without asking the nodes, under the
    /// same fencing token.
    /// So does a reader that comes within a third of the time for which the process's oldest reader has held the key.
    /// It must ask with the same time to live and renewal and without a [`max_hold`](AcquireOptions::max_hold).
    /// Metrics and logs name the class of the reader that came first.
    /// In a [scope](crate::Scope), a reader joins no lease of a caller outside that scope.
    /// A reader that comes later asks the nodes for another lease, while the first lease continues.
    ///
    /// Readers that come all the time do not block a writer of one key for good.
    /// A node that refuses a writer because of readers stores the writer's wish, and admits no new reader while the
    /// wish lasts.
    /// So the writer waits for the readers that hold the key, for those that join them, and for its own next attempt.
    /// A wish ends with the writer's turn, or some 0.7 s after its last attempt.
    /// Until then the nodes refuse readers and [single attempts](Self::try_acquire) of other writers, also if the writer
    /// has given up.
    /// A writer of [several keys](Self::acquire_all) leaves a wish only if readers alone keep it out.
    /// Within a process the client serves callers in order, and a reader waits behind a writer that came before it.
    /// So a reader that holds a key must release it before it acquires the key again, unless it does so in a
    /// [scope](crate::Scope): otherwise it may wait for a writer that waits for it, until its wait ends.
    /// The client reports no [`Deadlock`](crate::AcquireErrorKind::Deadlock) that goes through a shared lease.
    ///
    /// The fencing token of a reader is greater than those of all writers before it.
    /// The fencing token of a writer is greater than those of all readers before it.
    /// Shared leases whose acquires overlapped may have their tokens in any order, or the same token; a reader that joins
    /// a lease has that lease's token.
    ///
    /// See [`AcquireOptions::shared`] for several keys or other options, and [`LockGuard::downgrade`] for a writer that
    /// continues as a reader.
    ///
    /// # Errors
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Panics
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let report = redlock.acquire_shared("accounts").await?;
    /// let another = redlock.acquire_shared("accounts").await?;
    /// assert!(redlock.try_acquire("accounts").await.is_err(), "it is read");
    /// another.release().await?;
    /// report.release().await?;
    /// let booking = redlock.try_acquire("accounts").await?;
    /// # drop(booking);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire_shared<K>(&self, key: K) -> Result<LockGuard, AcquireError>
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        self.acquire_with(key, AcquireOptions::new().shared()).await
    }
}

/// The shared leases that other callers of the process may join, by their keys.
#[derive(Debug)]
pub(super) struct Readers(Mutex<OpenLeases>);

#[derive(Debug)]
struct OpenLeases {
    /// The leases on the same keys, the oldest first.
    open: HashMap<ResourceKeys, Vec<Open>>,
    /// Above this number, the table drops leases that have no holder any more.
    sweep_at: usize,
}

#[derive(Debug)]
struct Open {
    held: Weak<HeldLease>,
    lease: OpenLease,
}

impl Readers {
    pub(super) fn new() -> Self {
        Self(Mutex::new(OpenLeases {
            open: HashMap::new(),
            sweep_at: FEW,
        }))
    }

    /// Returns another guard of the newest lease on exactly these keys, if a caller may join it on these terms.
    pub(super) fn join(
        &self,
        keys: &ResourceKeys,
        terms: &LeaseTerms,
        now: Instant,
    ) -> Option<LockGuard> {
        let held = {
            let mut state = self.state();
            let open = state.open.get_mut(keys)?;
            open.retain(Open::is_held);
            let (oldest, newest) = (open.first()?, open.last()?);
            let held = newest.held.upgrade()?;
            let deadline = held.lease().valid_until();
            let may_join = newest.lease.may_join(terms, &oldest.lease, deadline, now);
            may_join.then_some(held)?
        };
        // A holder that leaves the key on the nodes must not decide that for other readers.
        if held.stays() {
            return None;
        }
        let guard = LockGuard::another(held)?;
        guard.is_held().then_some(guard)
    }

    /// Lets others join a lease that was won at `now`.
    pub(super) fn open(
        &self,
        keys: &ResourceKeys,
        guard: &LockGuard,
        terms: LeaseTerms,
        now: Instant,
    ) {
        let Some(lease) = OpenLease::new(terms, now) else {
            return;
        };
        let mut state = self.state();
        if state.open.len() >= state.sweep_at {
            state.open.retain(|_, open| {
                open.retain(Open::is_held);
                !open.is_empty()
            });
            state.sweep_at = (2 * state.open.len()).max(FEW);
        }
        let held = Arc::downgrade(guard.held());
        let open = state.open.entry(keys.clone()).or_default();
        open.retain(Open::is_held);
        open.push(Open { held, lease });
    }

    fn state(&self) -> MutexGuard<'_, OpenLeases> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn is_held(&self) -> bool {
        self.held.upgrade().is_some_and(|held| held.is_held())
    }
}

const FEW: usize = 16;
