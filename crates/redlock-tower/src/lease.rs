use std::{ops::Deref, sync::Arc};

use redlock_core::{Redlock, ResourceKey};

/// A view of the lease that the request holds.
///
/// [`RedlockLayer`](crate::RedlockLayer) leaves it in the request's extensions; it is a
/// [`redlock_core::Lease`] in all but name.
/// With the feature `axum` it is an extractor, whose rejection says that there is no lease; take
/// `Option<Lease>` in handlers that are also reached without a lock.
/// If two layers locked something for the request, it is the lease of the inner one, and
/// [`outer`](Self::outer) leads to the other.
///
/// Keeping it keeps nothing locked.
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
    outer: Option<Arc<Self>>,
}

impl Lease {
    /// A view of a lease of `client`, for a request that already has `outer`.
    pub(crate) fn new(lease: redlock_core::Lease, client: &Redlock, outer: Option<&Self>) -> Self {
        Self {
            lease,
            client: client.id(),
            outer: outer.cloned().map(Arc::new),
        }
    }

    /// The lease that a layer further out took for the same request.
    pub fn outer(&self) -> Option<&Self> {
        self.outer.as_deref()
    }

    /// The lease on `key`, if it is this one or one further out.
    pub(crate) fn of(&self, key: &ResourceKey, client: &Redlock) -> Option<&redlock_core::Lease> {
        let mut leases = std::iter::successors(Some(self), |lease| lease.outer());
        let lease = leases.find(|lease| lease.client == client.id() && lease.key() == key)?;
        Some(&lease.lease)
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
