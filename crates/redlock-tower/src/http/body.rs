use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use pin_project_lite::pin_project;

use crate::{
    Rejection,
    generic::ServiceError,
    grpc::{self, Protocol},
    metrics::RequestReports,
    request::handler_locks::RequestLocks,
};

pin_project! {
    /// The response's body of [`RedlockService`](crate::RedlockService): the inner body, which holds the lock until it
    /// ends, or the body of a refusal.
    ///
    /// The body releases the lock with its last frame, with an error, or when it is dropped.
    /// It does not release a lock that the handler has [taken out](crate::RequestLease::into_owned).
    /// A body that is empty from the start, such as that of a `204` or of a `HEAD` request, releases the lock with the
    /// head.
    ///
    /// The body checks the lease before each poll of the inner body.
    /// If the lease is lost, it drops the inner body and ends with an error: a [`Rejection`] of the kind
    /// [`Lost`](crate::RejectionKind::Lost).
    /// A server then breaks the response off, so that no client takes a part of the body for the whole.
    /// The answer to a gRPC request ends with the trailers of the status `ABORTED` instead.
    ///
    /// # Panics
    ///
    /// If the body is polled while it holds a lock outside a tokio runtime with its timer enabled.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        state: BodyState<B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = BodyStateProj]
    enum BodyState<B> {
        Inner {
            #[pin]
            body: B,
            // Dropped after `body`: its work is over before the resource is another's.
            locks: Option<RequestLocks>,
            protocol: Protocol,
            // That of the layer whose locks these are.
            reports: Option<Arc<RequestReports>>,
        },
        Refusal { #[pin] body: Full<Bytes> },
        Ended,
    }
}

impl<B> ResponseBody<B> {
    pub(crate) fn refusal(body: Bytes) -> Self {
        Self {
            state: BodyState::Refusal {
                body: Full::new(body),
            },
        }
    }
}

impl<B: Body> ResponseBody<B> {
    pub(crate) fn new(
        body: B,
        locks: Option<RequestLocks>,
        protocol: Protocol,
        reports: Option<Arc<RequestReports>>,
    ) -> Self {
        // A server need not poll a body that says it has ended.
        let locks = locks.filter(|_| !body.is_end_stream());
        Self {
            state: BodyState::Inner {
                body,
                locks,
                protocol,
                reports,
            },
        }
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<ServiceError>,
{
    type Data = Bytes;
    type Error = ServiceError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ServiceError>>> {
        let mut this = self.project();
        match this.state.as_mut().project() {
            BodyStateProj::Inner {
                mut body,
                locks,
                protocol,
                reports,
            } => {
                if let Some(locks) = locks
                    && let Poll::Ready(reason) = locks.poll_lost(cx)
                {
                    let (protocol, reports) = (*protocol, reports.take());
                    let class = locks.class();
                    let rejection = Rejection::lost(reason).of_class(class.as_deref());
                    this.state.set(BodyState::Ended);
                    if let Some(reports) = reports {
                        reports.refused(&rejection);
                    }
                    return Poll::Ready(Some(match protocol {
                        Protocol::Http => Err(rejection.into()),
                        Protocol::Grpc => Ok(Frame::trailers(grpc::trailers(&rejection))),
                    }));
                }
                let polled = match locks {
                    Some(locks) => locks.within(|| body.as_mut().poll_frame(cx)),
                    None => body.as_mut().poll_frame(cx),
                };
                let frame = ready!(polled);
                // A reader may stop at the last frame without polling for the end behind it.
                if !matches!(frame, Some(Ok(_))) || body.is_end_stream() {
                    this.state.set(BodyState::Ended);
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            BodyStateProj::Refusal { body } => body
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            BodyStateProj::Ended => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            BodyState::Inner { body, .. } => body.is_end_stream(),
            BodyState::Refusal { body } => body.is_end_stream(),
            BodyState::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            BodyState::Inner { body, .. } => body.size_hint(),
            BodyState::Refusal { body } => body.size_hint(),
            BodyState::Ended => SizeHint::with_exact(0),
        }
    }
}

/// Reads a response to its end, and returns it with its whole body, for tests that call a service without a server.
///
/// With [`Hold::Body`](crate::Hold::Body), the default, a response holds the lock until its body has ended: a test that
/// only looks at the status keeps the lock.
/// Another client than the layer's has the lock a moment later, when the nodes have the release.
///
/// # Errors
///
/// The body fails, for example because its lease was lost.
///
/// # Cancel safety
///
/// Dropping the future drops the response, which releases the lock too.
///
/// # Examples
///
/// ```
/// use axum::{Router, body::Body, http::Request, routing::post};
/// use redlock_core::{AcquireOptions, Redlock, Wait};
/// use redlock_tower::{PathKey, RedlockLayer, read_to_end};
/// use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let at_once = AcquireOptions::new().wait(Wait::Never);
/// let lock = RedlockLayer::builder(redlock).options(at_once).build(PathKey::new("order", "order_id"))?;
/// let app: Router = Router::new().route("/orders/{order_id}/pay", post(async || "paid").route_layer(lock));
/// let pay = || Request::post("/orders/42/pay").body(Body::empty());
///
/// let unread = app.clone().oneshot(pay()?).await?;
/// let refused = read_to_end(app.clone().oneshot(pay()?).await?).await?;
/// assert_eq!(refused.status(), 409, "the answer that was not read has the lock");
///
/// let paid = read_to_end(unread).await?;
/// assert_eq!((paid.status().as_u16(), &paid.body()[..]), (200, &b"paid"[..]));
/// assert_eq!(read_to_end(app.oneshot(pay()?).await?).await?.status(), 200);
/// # Ok(())
/// # }
/// ```
pub async fn read_to_end<B: Body>(response: Response<B>) -> Result<Response<Bytes>, B::Error> {
    let (head, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}

/// The inner body's default, for layers around this one that answer by themselves.
impl<B: Default> Default for ResponseBody<B> {
    fn default() -> Self {
        Self {
            state: BodyState::Inner {
                body: B::default(),
                locks: None,
                protocol: Protocol::Http,
                reports: None,
            },
        }
    }
}
