//! What comes before the inner service: the key, and the lock on it.

use std::{fmt, pin::Pin, sync::Arc};

use http::Request;
use redlock_core::{AcquireOptions, Redlock};

use crate::{Hold, KeyExtractor, Lease, Rejection, held::Held};

/// What a layer and its services share.
pub(crate) struct Shared<K> {
    pub(crate) redlock: Redlock,
    pub(crate) options: AcquireOptions,
    pub(crate) hold: Hold,
    pub(crate) key: K,
}

/// The request, and the lock it holds if it needs one.
pub(crate) type Acquired<ReqBody> = Result<(Request<ReqBody>, Option<Held>), Rejection>;

/// An acquisition under way; boxed, for next to a round trip to the nodes that costs nothing.
pub(crate) type Acquiring<ReqBody> = Pin<Box<dyn Future<Output = Acquired<ReqBody>> + Send>>;

/// Names the resource, takes the lock and leaves a view of the lease with the request.
pub(crate) async fn acquire<K, ReqBody>(
    shared: Arc<Shared<K>>,
    mut request: Request<ReqBody>,
) -> Acquired<ReqBody>
where
    K: KeyExtractor<Request<ReqBody>>,
{
    let Some(key) = shared.key.extract(&mut request).await? else {
        return Ok((request, None));
    };
    let guard = shared
        .redlock
        .acquire_with(key, shared.options.clone())
        .await?;
    // The view and never the guard: extensions are cloned, and a clone kept somewhere would hold on.
    request
        .extensions_mut()
        .insert(Lease::new(guard.lease().clone()));
    Ok((request, Some(Held::new(guard))))
}

impl<K> fmt::Debug for Shared<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("redlock", &self.redlock)
            .field("options", &self.options)
            .field("hold", &self.hold)
            .finish_non_exhaustive()
    }
}
