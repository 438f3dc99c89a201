use std::ops::Deref;

/// A view of the lease that the request holds.
///
/// [`RedlockLayer`](crate::RedlockLayer) leaves it in the request's extensions; it is a
/// [`redlock_core::Lease`] in all but name.
/// With the feature `axum` it is an extractor, whose rejection says that there is no lease; take
/// `Option<Lease>` in handlers that are also reached without a lock.
/// If two layers locked something for the request, it is the lease of the inner one.
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
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Lease(redlock_core::Lease);

impl Lease {
    pub(crate) fn new(lease: redlock_core::Lease) -> Self {
        Self(lease)
    }
}

impl Deref for Lease {
    type Target = redlock_core::Lease;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<Lease> for redlock_core::Lease {
    fn from(lease: Lease) -> Self {
        lease.0
    }
}
