//! The part that a layer, its services and their futures share.

use std::{fmt, pin::Pin, sync::Arc};

use redlock_core::{AcquireOptions, ResourceKeys};

use crate::{
    KeyError, KeyExtractor, Rejection, RequestLease, held::Held, locks::Desk, terms::Terms,
};

/// How a layer locks, and what.
pub(crate) struct Shared<K> {
    pub(crate) terms: Terms,
    pub(crate) key: K,
}

/// Where requests of one kind keep their leases.
pub(crate) trait Carrier<Req> {
    /// Returns the lease that the request has, with those further out.
    fn carried(request: &Req) -> Option<&RequestLease>;

    /// Gives the request a lease, in the place of the one it has.
    fn carry(request: &mut Req, lease: RequestLease);
}

/// The request and the lock it holds, if it needs one.
pub(crate) type Locked<Req> = Result<(Req, Option<Held>), Rejection>;

/// An acquisition under way; boxed, for next to a round trip to the nodes that costs nothing.
pub(crate) type Acquiring<Req> = Pin<Box<dyn Future<Output = Locked<Req>> + Send>>;

/// The first step of a request.
pub(crate) enum Start<Req> {
    /// It needs no lock.
    Unlocked(Req),
    /// Its handler takes the locks.
    Attended(Req, Arc<Desk>),
    Refused(Rejection),
    Acquiring(Acquiring<Req>),
}

impl<K> Shared<K> {
    /// Names the resource and begins to lock it, as `options` say where they say something.
    pub(crate) fn start<Req, C>(
        self: &Arc<Self>,
        mut request: Req,
        options: AcquireOptions,
    ) -> Start<Req>
    where
        K: KeyExtractor<Req>,
        Req: Send + 'static,
        C: Carrier<Req> + 'static,
    {
        let keys = match self.key.extract_now(&mut request) {
            Some(Ok(None)) => return Start::Unlocked(request),
            Some(Err(error)) => return Start::Refused(error.into()),
            Some(Ok(Some(keys))) => Some(keys),
            None => None,
        };
        let shared = Arc::clone(self);
        Start::Acquiring(Box::pin(async move {
            shared.acquire::<Req, C>(request, keys, options).await
        }))
    }

    /// Names the resource, if it is not named yet, takes the lock and leaves a view of the lease with the request.
    async fn acquire<Req, C>(
        &self,
        mut request: Req,
        keys: Option<ResourceKeys>,
        options: AcquireOptions,
    ) -> Locked<Req>
    where
        K: KeyExtractor<Req>,
        C: Carrier<Req>,
    {
        let keys: Result<_, KeyError> = match keys {
            Some(keys) => Ok(Some(keys)),
            None => self.key.extract(&mut request).await,
        };
        let Some(keys) = keys? else {
            return Ok((request, None));
        };
        let carried = C::carried(&request).cloned();
        let options = self.key.options(&request).or(&options);
        let held = Held::take(&self.terms, options, keys, carried.as_ref()).await?;
        // The view and never the guard: extensions are cloned, and a clone kept somewhere would hold on.
        C::carry(&mut request, held.lease().clone());
        self.key.granted(&mut request, held.lease());
        Ok((request, Some(held)))
    }
}

impl<K> fmt::Debug for Shared<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}
