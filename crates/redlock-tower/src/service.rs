use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use redlock_core::AcquireOptions;
use tower_service::Service;

use crate::{
    Hold, KeyExtractor, RequestLease, ResponseBody, ResponseFuture,
    answers::Answers,
    exclusive::Exclusive,
    locks::Desk,
    placement::Placement,
    protocol::Protocol,
    shared::{Carrier, Shared, Start},
    terms::OptionsOfHead,
};

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
    parts: Arc<Parts<K>>,
}

/// What a layer and its services have in common.
pub(crate) struct Parts<K> {
    pub(crate) shared: Arc<Shared<K>>,
    pub(crate) rules: Rules,
    pub(crate) placement: Arc<Placement>,
}

/// How a layer treats requests of HTTP.
#[derive(Default)]
pub(crate) struct Rules {
    pub(crate) hold: Hold,
    pub(crate) answers: Answers,
    /// The methods that are locked; `None` for all.
    pub(crate) only: Option<Arc<[Method]>>,
    pub(crate) options_with: Option<Arc<OptionsOfHead>>,
}

impl Rules {
    /// Returns the options for `request` by its head, if the layer has a function for them.
    fn options<B>(&self, request: Request<B>) -> (AcquireOptions, Request<B>) {
        let Some(options_with) = &self.options_with else {
            return (AcquireOptions::new(), request);
        };
        let (head, body) = request.into_parts();
        let options = options_with(&head);
        (options, Request::from_parts(head, body))
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

impl<S, K> RedlockService<S, K> {
    pub(crate) fn new(inner: S, parts: Arc<Parts<K>>) -> Self {
        Self { inner, parts }
    }

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
        let Parts {
            shared,
            rules,
            placement,
        } = &*self.parts;
        let protocol = Protocol::of(request.headers());
        let only = rules.only.as_ref();
        let start = if only.is_some_and(|only| !only.contains(request.method())) {
            Start::Unlocked(request)
        } else {
            let (options, mut request) = rules.options(request);
            if shared.key.leaves_it_to_the_handler() {
                let desk = Desk::new(shared.terms.with(options));
                request.extensions_mut().insert(desk.way());
                Start::Attended(request, desk)
            } else {
                shared.start::<_, Extensions>(request, options)
            }
        };
        // `self.inner` was never made ready, so its clone may be taken instead of itself.
        let exclusive = Exclusive::new(self.inner.clone(), start);
        ResponseFuture::new(
            exclusive,
            rules.hold,
            rules.answers.clone(),
            protocol,
            Arc::clone(placement),
        )
    }
}

// By hand, because a derived one would ask for `K: Clone`.
impl<S: Clone, K> Clone for RedlockService<S, K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            parts: Arc::clone(&self.parts),
        }
    }
}

impl<S: fmt::Debug, K> fmt::Debug for RedlockService<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedlockService")
            .field("inner", &self.inner)
            .field("shared", &self.parts.shared)
            .finish()
    }
}
