//! The layer that reads a request's body before the lock.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    KeyError, Rejection, ResponseBody,
    generic::ServiceError,
    grpc::Protocol,
    request::call::{Admission, Completion, LockedCall},
};

/// Reads the whole body of a request before it calls the inner service, up to a limit.
///
/// Put it outside of a [`RedlockLayer`](crate::RedlockLayer): then no client holds the lock for as long as it takes to send
/// its body, and on HTTP/1 a server notices that a client has hung up while its request waits for the lock.
/// The layer answers with 413 if the body is larger than the limit, and with 400 if the body breaks off.
/// It does not limit the time: a time limit outside of it does.
/// It keeps no trailers of the request.
///
/// # Examples
///
/// ```
/// use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
/// use redlock_core::Redlock;
/// use redlock_tower::{PathKey, ReadBodyLayer, RedlockLayer};
/// use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let lock = RedlockLayer::new(redlock, PathKey::new("order", "order_id"));
/// // The layer that is added last is the outermost.
/// let note = post(async |text: String| text).route_layer(lock).route_layer(ReadBodyLayer::new(64 * 1024));
/// let app: Router = Router::new().route("/orders/{order_id}/note", note);
///
/// let ask = |body: String| Request::post("/orders/42/note").body(Body::from(body));
/// assert_eq!(app.clone().oneshot(ask("a".repeat(1_000))?).await?.status(), StatusCode::OK);
/// let refused = app.oneshot(ask("a".repeat(65_537))?).await?;
/// assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct ReadBodyLayer {
    limit: usize,
}

impl ReadBodyLayer {
    /// Makes a layer that reads bodies of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit }
    }
}

impl<S> Layer<S> for ReadBodyLayer {
    type Service = ReadBodyService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ReadBodyService {
            inner,
            limit: self.limit,
        }
    }
}

/// The service that [`ReadBodyLayer`] makes.
///
/// It is always ready; the response's future makes the inner service ready when it has read the body.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use axum::{body::Body, http::{Request, Response}};
/// use redlock_tower::{ReadBodyLayer, ReadBodyService};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// let inner = service_fn(async |_: Request<Body>| Ok::<_, std::io::Error>(Response::new(Body::empty())));
/// let service: ReadBodyService<_> = ReadBodyLayer::new(3).layer(inner);
/// let answer = service.oneshot(Request::new(Body::from("four"))).await?;
/// assert_eq!(answer.status(), 413);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ReadBodyService<S> {
    inner: S,
    limit: usize,
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for ReadBodyService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    ReqBody: Body<Data: Send, Error: Into<ServiceError>> + From<Bytes> + Send + 'static,
    ResBody: Body<Data = Bytes>,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = S::Error;
    type Future = ReadBodyFuture<S, ReqBody>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let limit = self.limit;
        let protocol = Protocol::of(request.headers());
        let least = usize::try_from(request.body().size_hint().lower());
        let admission = if request.body().is_end_stream() {
            Admission::Unlocked(request)
        } else if least.is_ok_and(|least| least <= limit) {
            Admission::Acquiring(Box::pin(async move {
                let (head, body) = request.into_parts();
                let body = Limited::new(body, limit).collect().await;
                let body = body.map_err(|error| refused(&*error))?.to_bytes();
                Ok((Request::from_parts(head, body.into()), None))
            }))
        } else {
            Admission::Refused(too_large())
        };
        ReadBodyFuture {
            // `self.inner` was never made ready, so its clone may be taken instead of itself.
            call: LockedCall::new(self.inner.clone(), admission),
            protocol,
        }
    }
}

/// Returns the refusal of a request whose body cannot be read; a layer further out may have a limit, too.
fn refused(error: &(dyn Error + 'static)) -> Rejection {
    let mut errors = std::iter::successors(Some(error), |error| <dyn Error>::source(*error));
    if errors.any(|error| error.is::<LengthLimitError>()) {
        return too_large();
    }
    KeyError::new(StatusCode::BAD_REQUEST, "the request's body broke off").into()
}

fn too_large() -> Rejection {
    KeyError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "the request's body is too large",
    )
    .into()
}

pin_project! {
    /// The response's future of [`ReadBodyService`].
    ///
    /// # Panics
    ///
    /// If the future is polled after it is done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the request or the inner future, and has no other effect.
    #[must_use = "futures do nothing unless polled"]
    pub struct ReadBodyFuture<S, ReqBody>
    where
        S: Service<Request<ReqBody>>,
    {
        #[pin]
        call: LockedCall<S, Request<ReqBody>>,
        protocol: Protocol,
    }
}

impl<S, ReqBody, ResBody> Future for ReadBodyFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    ResBody: Body<Data = Bytes>,
{
    type Output = Result<Response<ResponseBody<ResBody>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let protocol = *this.protocol;
        Poll::Ready(match ready!(this.call.poll(cx)) {
            Completion::Served(response, _) => {
                Ok(response.map(|body| ResponseBody::new(body, None, protocol, None)))
            }
            Completion::Failed(error) => Err(error),
            Completion::Refused(rejection) => {
                rejection.log(None);
                let mut response = match protocol {
                    Protocol::Http => rejection.problem(),
                    Protocol::Grpc => rejection.grpc(),
                };
                response.extensions_mut().insert(rejection);
                Ok(response.map(ResponseBody::refusal))
            }
        })
    }
}

impl<S, ReqBody> fmt::Debug for ReadBodyFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadBodyFuture")
            .field("state", &self.call)
            .finish_non_exhaustive()
    }
}
