//! The layer for services whose requests are not HTTP requests.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use redlock_core::{AcquireOptions, Redlock};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    ConfigError, KeyExtractor, LossPolicy, RequestLease,
    request::call::{Carrier, Completion, KeyedLocker, LockedCall},
    request::request_lock::Locker,
};

/// The error of a service: that of the inner service, or a [`Rejection`](crate::Rejection).
pub type ServiceError = Box<dyn Error + Send + Sync>;

/// Lets one request per resource at a time through to the inner service, across every replica.
///
/// It does what [`RedlockLayer`](crate::RedlockLayer) does, for requests that are not HTTP requests, but for one thing.
/// Such a request carries no lock from layer to layer: behind another layer with the same key, the inner one refuses every
/// request as [`Misuse`](crate::RejectionKind::Misuse), because it would wait for the outer one.
/// A refusal is an error here: the boxed error is a [`Rejection`](crate::Rejection), which
/// [`downcast_ref`](std::error::Error#method.downcast_ref) returns.
/// The layer holds the lock until the inner service's future ends, unless the service takes the lock out by
/// [`RequestLease::into_owned`].
/// [`KeyExtractor::granted`] puts the fencing token into a request that needs it.
/// [`KeyExtractor::options`] sets another wait or another time to live for one request.
///
/// # Examples
///
/// ```
/// use redlock_core::{FencingToken, Redlock, ResourceKey, ResourceKeys};
/// use redlock_tower::{KeyError, KeyExtractor, RequestLease, Rejection, RejectionKind, GenericLayer};
/// use tower::{BoxError, Layer, Service, ServiceExt, service_fn};
///
/// struct Charge { account: u64, token: Option<FencingToken> }
///
/// struct ByAccount;
///
/// impl KeyExtractor<Charge> for ByAccount {
///     async fn extract(&self, charge: &mut Charge) -> Result<Option<ResourceKeys>, KeyError> {
///         Ok(Some(ResourceKey::new("account", charge.account)?.into()))
///     }
///
///     fn granted(&self, charge: &mut Charge, lease: &RequestLease) {
///         charge.token = Some(lease.token());
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let charge = service_fn(async |charge: Charge| Ok::<_, BoxError>(charge.token));
/// let service = GenericLayer::new(redlock.clone(), ByAccount).layer(charge);
///
/// let token = service.clone().oneshot(Charge { account: 7, token: None }).await?;
/// assert!(token.is_some());
///
/// redlock.close().await;
/// let refused = service.oneshot(Charge { account: 7, token: None }).await.unwrap_err();
/// let rejection = refused.downcast_ref::<Rejection>().unwrap();
/// assert_eq!(rejection.kind(), RejectionKind::Closed);
/// # Ok(())
/// # }
/// ```
#[must_use = "a layer does nothing until it is put around a service"]
pub struct GenericLayer<K> {
    keyed: Arc<KeyedLocker<K>>,
}

impl<K> GenericLayer<K> {
    /// Makes a layer that locks what `key` names, with the client's own time to live and wait.
    pub fn new(redlock: Redlock, key: K) -> Self {
        let locker = Locker::new(redlock, AcquireOptions::new(), LossPolicy::default());
        Self::from_keyed(KeyedLocker { locker, key })
    }

    /// Makes a layer that locks what `key` names as `options` say, and treats a loss as `on_lost` says.
    ///
    /// # Errors
    ///
    /// The client cannot grant one of the options.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_core::{AcquireOptions, Redlock, ResourceKey, Wait};
    /// # use redlock_tower::{KeyError, LossPolicy, GenericLayer};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let by_itself = |number: &u64| -> Result<Option<ResourceKey>, KeyError> {
    ///     Ok(Some(ResourceKey::new("number", *number)?))
    /// };
    /// let double = service_fn(async |number: u64| Ok::<_, std::io::Error>(2 * number));
    /// let at_once = AcquireOptions::new().wait(Wait::Never);
    /// let layer = GenericLayer::with_options(redlock.clone(), at_once, LossPolicy::Abort, by_itself)?;
    ///
    /// let another = redlock.acquire("number:21").await?;
    /// assert!(layer.layer(double).oneshot(21).await.is_err());
    /// # drop(another);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_options(
        redlock: Redlock,
        options: AcquireOptions,
        on_lost: LossPolicy,
        key: K,
    ) -> Result<Self, ConfigError> {
        redlock.check(&options)?;
        let locker = Locker::new(redlock, options, on_lost);
        Ok(Self::from_keyed(KeyedLocker { locker, key }))
    }

    fn from_keyed(keyed: KeyedLocker<K>) -> Self {
        Self {
            keyed: Arc::new(keyed),
        }
    }
}

impl<S, K> Layer<S> for GenericLayer<K> {
    type Service = GenericService<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        GenericService {
            inner,
            keyed: Arc::clone(&self.keyed),
        }
    }
}

/// The service that [`GenericLayer`] makes.
///
/// # Readiness
///
/// The service is always ready.
/// The response's future makes the inner service ready after it has acquired the lock, as in
/// [`RedlockService`](crate::RedlockService).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_core::ResourceKey;
/// use redlock_tower::{KeyError, GenericLayer, GenericService};
/// use tower::Layer;
///
/// let by_itself = |number: &u64| -> Result<Option<ResourceKey>, KeyError> {
///     Ok(Some(ResourceKey::new("number", *number)?))
/// };
/// let mut service: GenericService<_, _> = GenericLayer::new(redlock, by_itself).layer("any service");
/// assert_eq!(*service.get_ref(), "any service");
/// *service.get_mut() = "another";
/// assert_eq!(service.into_inner(), "another");
/// # Ok(())
/// # }
/// ```
pub struct GenericService<S, K> {
    inner: S,
    keyed: Arc<KeyedLocker<K>>,
}

impl<S, K> GenericService<S, K> {
    /// Returns the inner service; a call of it takes no lock.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner service, to be changed; a call of it takes no lock.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Takes the inner service out; a call of it takes no lock.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

/// Requests of any kind have no place for a lease.
struct Nowhere;

impl<Req> Carrier<Req> for Nowhere {
    fn carried(_: &Req) -> Option<&RequestLease> {
        None
    }

    fn carry(_: &mut Req, _: RequestLease) {}
}

impl<S, K, Req> Service<Req> for GenericService<S, K>
where
    S: Service<Req> + Clone,
    S::Error: Into<ServiceError>,
    K: KeyExtractor<Req>,
    Req: Send + 'static,
{
    type Response = S::Response;
    type Error = ServiceError;
    type Future = GenericFuture<S, Req>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ServiceError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let admission = self
            .keyed
            .admit::<_, Nowhere>(request, AcquireOptions::new());
        GenericFuture {
            // `self.inner` was never made ready, so its clone may be taken instead of itself.
            call: LockedCall::new(self.inner.clone(), admission),
            redlock: self.keyed.locker.redlock.clone(),
        }
    }
}

pin_project! {
    /// The response's future of [`GenericService`].
    ///
    /// # Panics
    ///
    /// If the future is polled outside a tokio runtime with its timer enabled, or after it is done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point drops the inner future, and then gives up the place in the queue and the lock.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct GenericFuture<S, Req>
    where
        S: Service<Req>,
    {
        #[pin]
        call: LockedCall<S, Req>,
        redlock: Redlock,
    }
}

impl<S, Req> Future for GenericFuture<S, Req>
where
    S: Service<Req>,
    S::Error: Into<ServiceError>,
{
    type Output = Result<S::Response, ServiceError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(match ready!(this.call.poll(cx)) {
            // The work is done, and with it the hold.
            Completion::Served(response, locks) => {
                if let Some(locks) = locks {
                    locks.let_go();
                }
                Ok(response)
            }
            Completion::Failed(error) => Err(error.into()),
            Completion::Refused(rejection) => {
                rejection.log(Some(this.redlock));
                Err(rejection.into())
            }
        })
    }
}

// By hand, because derived ones would ask for `K: Clone`.
impl<K> Clone for GenericLayer<K> {
    fn clone(&self) -> Self {
        Self {
            keyed: Arc::clone(&self.keyed),
        }
    }
}

impl<S: Clone, K> Clone for GenericService<S, K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            keyed: Arc::clone(&self.keyed),
        }
    }
}

impl<K> fmt::Debug for GenericLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GenericLayer").field(&self.keyed).finish()
    }
}

impl<S: fmt::Debug, K> fmt::Debug for GenericService<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenericService")
            .field("inner", &self.inner)
            .field("keyed", &self.keyed)
            .finish()
    }
}
