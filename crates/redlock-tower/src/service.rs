use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::{
    KeyExtractor, ResponseBody, ResponseFuture,
    acquire::{Shared, acquire},
};

/// The service that [`RedlockLayer`](crate::RedlockLayer) makes.
///
/// Its error is the inner service's: every refusal is a response.
///
/// # Readiness
///
/// It is always ready.
/// The inner service is made ready by the response's future once that holds the lock: readiness may
/// reserve something that others need, and requests that wait for one busy key would sit on it.
pub struct RedlockService<S, K> {
    inner: S,
    shared: Arc<Shared<K>>,
}

impl<S, K> RedlockService<S, K> {
    pub(crate) fn new(inner: S, shared: Arc<Shared<K>>) -> Self {
        Self { inner, shared }
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
        // `self.inner` was never made ready, so its clone may be taken instead of itself.
        let inner = self.inner.clone();
        let hold = self.shared.hold;
        ResponseFuture::new(
            inner,
            hold,
            Box::pin(acquire(Arc::clone(&self.shared), request)),
        )
    }
}

// By hand, because a derived one would ask for `K: Clone`.
impl<S: Clone, K> Clone for RedlockService<S, K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: fmt::Debug, K> fmt::Debug for RedlockService<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedlockService")
            .field("inner", &self.inner)
            .field("shared", &self.shared)
            .finish()
    }
}
