use std::{
    ops::Deref,
    sync::{Arc, Weak},
};

use redlock_core::{Redlock, ResourceKeys};

use crate::slot::Slot;

/// A view of the lease that the request holds.
///
/// [`RedlockLayer`](crate::RedlockLayer) leaves it in the request's extensions; it is a
/// [`redlock_core::Lease`] in all but name.
/// With the feature `axum` it is an extractor, whose rejection says that there is no lease; take
/// `Option<Lease>` in handlers that are also reached without a lock.
/// If two layers locked something for the request, it is the lease of the inner one, and
/// [`outer`](Self::outer) leads to the other.
///
/// Keeping it keeps nothing locked; [`into_owned`](Self::into_owned) does.
///
/// # Examples
///
/// ```
/// use redlock_tower::Lease;
///
/// async fn pay(lease: Lease) {
///     // Before a step that cannot be dropped half way:
///     if lease.is_held() { /* … */ }
///     // And for the resource, which refuses older ones:
///     let token = lease.token();
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Lease {
    lease: redlock_core::Lease,
    /// The client it comes from: equal keys of two clients are two resources.
    client: u64,
    /// The guard, while the request has it.
    slot: Weak<Slot>,
    outer: Option<Arc<Self>>,
}

impl Lease {
    /// Makes a view of a lease of `client` whose guard is in `slot`, for a request that already has `outer`.
    pub(crate) fn new(
        lease: redlock_core::Lease,
        client: &Redlock,
        slot: &Arc<Slot>,
        outer: Option<&Self>,
    ) -> Self {
        Self {
            lease,
            client: client.id(),
            slot: Arc::downgrade(slot),
            outer: outer.cloned().map(Arc::new),
        }
    }

    /// Makes another view of this lease, for a request that already has `outer`.
    pub(crate) fn again(&self, outer: Option<&Self>) -> Self {
        Self {
            outer: outer.cloned().map(Arc::new),
            ..self.clone()
        }
    }

    /// Returns the lease that a layer further out took for the same request.
    pub fn outer(&self) -> Option<&Self> {
        self.outer.as_deref()
    }

    /// Returns where the guard is, unless the request is over.
    pub(crate) fn slot(&self) -> Option<Arc<Slot>> {
        self.slot.upgrade()
    }

    /// Returns the lease on all of `keys`, if it is this one or one further out.
    pub(crate) fn of(&self, keys: &ResourceKeys, client: &Redlock) -> Option<&Self> {
        let mut leases = std::iter::successors(Some(self), |lease| lease.outer());
        let is_on_all = |lease: &Self| keys.iter().all(|key| lease.keys().contains(key));
        leases.find(|lease| lease.client == client.id() && is_on_all(lease))
    }
}

impl Deref for Lease {
    type Target = redlock_core::Lease;

    fn deref(&self) -> &Self::Target {
        &self.lease
    }
}

impl From<Lease> for redlock_core::Lease {
    fn from(lease: Lease) -> Self {
        lease.lease
    }
}
