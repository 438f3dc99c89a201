//! The layer for requests of HTTP, and its service.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use redlock_core::{AcquireOptions, Redlock};
use tower_layer::Layer;
use tower_service::Service;

use super::rules::HttpRules;
use crate::{
    KeyExtractor, LossPolicy, RequestLease, ResponseBody, ResponseFuture,
    grpc::Protocol,
    metrics,
    request::call::{Admission, Carrier, KeyedLocker, LockedCall},
    request::handler_locks::HandlerLocks,
    request::request_lock::Locker,
};

/// Lets one request per resource at a time through to the inner service, across every replica.
///
/// `K` names what a request locks; see [`KeyExtractor`](crate::KeyExtractor).
/// The [crate page](crate) explains the layer.
///
/// The client and this value have all state, behind one `Arc`.
/// In axum, add the layer with [`MethodRouter::route_layer`], as in `post(handler).route_layer(lock)`: see [where the
/// layer goes](crate::guide::placement).
/// With `.layer(lock)`, preflights of CORS (`OPTIONS`), probes by `HEAD` and wrong methods wait for the lock and hold it,
/// too, unless [`only`](crate::RedlockLayerBuilder::only) names the methods that it locks.
///
/// [`Layer::layer`] only makes another handle to this state, because a server such as `axum::serve` may call it for
/// every connection.
///
/// [`MethodRouter::route_layer`]: https://docs.rs/axum/0.8/axum/routing/method_routing/struct.MethodRouter.html#method.route_layer
///
/// # Examples
///
/// Code can name the type:
///
/// ```
/// use redlock_core::Redlock;
/// use redlock_tower::{HeaderKey, RedlockLayer};
///
/// fn one_per_account(redlock: Redlock) -> RedlockLayer<HeaderKey> {
///     let header = http::HeaderName::from_static("x-account");
///     RedlockLayer::new(redlock, HeaderKey::new("account", header))
/// }
/// ```
#[must_use = "a layer does nothing until it is put around a service"]
pub struct RedlockLayer<K> {
    keyed: Arc<KeyedLocker<K>>,
    rules: Arc<HttpRules>,
}

impl<K> RedlockLayer<K> {
    /// Makes a layer that locks what `key` names, with the client's own time to live and wait.
    pub fn new(redlock: Redlock, key: K) -> Self {
        let rules = HttpRules::new(redlock.clone());
        let locker = Locker::new(redlock, AcquireOptions::new(), LossPolicy::default());
        Self::from_parts(KeyedLocker { locker, key }, rules)
    }

    pub(crate) fn from_parts(keyed: KeyedLocker<K>, rules: HttpRules) -> Self {
        metrics::describe();
        Self {
            keyed: Arc::new(keyed),
            rules: Arc::new(rules),
        }
    }
}

impl<S, K> Layer<S> for RedlockLayer<K> {
    type Service = RedlockService<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        RedlockService {
            inner,
            layer: self.clone(),
        }
    }
}

/// The service that [`RedlockLayer`](crate::RedlockLayer) makes.
///
/// Its error type is that of the inner service, because every refusal is a response.
///
/// # Readiness
///
/// The service is always ready.
/// The response's future makes the inner service ready after it has acquired the lock.
/// If it did so before, readiness could reserve a place that other requests need, while the request only waits for a
/// busy key.
///
/// # Panics of the inner service
///
/// A panic releases the lock and then reaches the outer layers: the connection breaks, or an outer layer such as
/// `CatchPanicLayer` of tower-http answers.
/// The handler's changes stay as they are, and the next request for the resource sees them, because nothing is
/// poisoned.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
/// use redlock_core::Redlock;
/// use redlock_tower::{PathKey, RedlockLayer};
/// use tower::ServiceExt;
/// use tower_http::catch_panic::CatchPanicLayer;
///
/// async fn pay() {
///     panic!("the card reader is upside down");
/// }
///
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let lock = RedlockLayer::new(redlock.clone(), PathKey::new("order", "order_id"));
/// let app: Router = Router::new()
///     .route("/orders/{order_id}/pay", post(pay).route_layer(lock))
///     .layer(CatchPanicLayer::new());
///
/// let answer = app.oneshot(Request::post("/orders/42/pay").body(Body::empty())?).await?;
/// assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
/// redlock.try_acquire("order:42").await?; // it is free
/// # Ok(())
/// # }
/// ```
pub struct RedlockService<S, K> {
    inner: S,
    layer: RedlockLayer<K>,
}

impl<S, K> RedlockService<S, K> {
    /// Returns the inner service; a call of it takes no lock.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner service, to be changed; a call of it takes no lock.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Takes the inner service out; a call of it takes no lock.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use redlock_tower::{HeaderKey, RedlockLayer};
    /// use tower::Layer;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let key = HeaderKey::new("account", http::HeaderName::from_static("x-account"));
    /// let mut service = RedlockLayer::new(redlock, key).layer("any service");
    /// assert_eq!(*service.get_ref(), "any service");
    /// *service.get_mut() = "another";
    /// assert_eq!(service.into_inner(), "another");
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_inner(self) -> S {
        self.inner
    }
}

/// Requests of HTTP keep their leases in their extensions.
struct Extensions;

impl<B> Carrier<Request<B>> for Extensions {
    fn carried(request: &Request<B>) -> Option<&RequestLease> {
        request.extensions().get()
    }

    fn carry(request: &mut Request<B>, lease: RequestLease) {
        request.extensions_mut().insert(lease);
    }
}

impl<S, K, ReqBody, ResBody> Service<Request<ReqBody>> for RedlockService<S, K>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    K: KeyExtractor<Request<ReqBody>>,
    ReqBody: Send + 'static,
    ResBody: Body<Data = Bytes>,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, ReqBody>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let RedlockLayer { keyed, rules } = &self.layer;
        let protocol = Protocol::of(request.headers());
        let admission = if rules.lock(request.method()) {
            let (options, mut request) = rules.options(request);
            if keyed.key.leaves_it_to_the_handler() {
                let locks = HandlerLocks::new(keyed.locker.with(options));
                request.extensions_mut().insert(locks.downgrade());
                Admission::InHandler(request, locks)
            } else {
                keyed.admit::<_, Extensions>(request, options)
            }
        } else {
            Admission::Unlocked(request)
        };
        // `self.inner` was never made ready, so its clone may be taken instead of itself.
        let call = LockedCall::new(self.inner.clone(), admission);
        ResponseFuture::new(call, Arc::clone(rules), protocol)
    }
}

// By hand, because derived ones would ask for `K: Clone`.
impl<K> Clone for RedlockLayer<K> {
    fn clone(&self) -> Self {
        Self {
            keyed: Arc::clone(&self.keyed),
            rules: Arc::clone(&self.rules),
        }
    }
}

impl<S: Clone, K> Clone for RedlockService<S, K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            layer: self.layer.clone(),
        }
    }
}

impl<K> fmt::Debug for RedlockLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedlockLayer")
            .field("keyed", &self.keyed)
            .field("rules", &self.rules)
            .finish()
    }
}

impl<S: fmt::Debug, K> fmt::Debug for RedlockService<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedlockService")
            .field("inner", &self.inner)
            .field("layer", &self.layer)
            .finish()
    }
}
