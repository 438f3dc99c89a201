use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use pin_project_lite::pin_project;

use crate::{
    Rejection,
    generic::ServiceError,
    grpc::{self, Protocol},
    handler_locks::RequestLocks,
    rules::HttpRules,
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
            // Those of the layer whose locks these are.
            rules: Option<Arc<HttpRules>>,
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
        rules: Option<Arc<HttpRules>>,
    ) -> Self {
        // A server need not poll a body that says it has ended.
        let locks = locks.filter(|_| !body.is_end_stream());
        Self {
            state: BodyState::Inner {
                body,
                locks,
                protocol,
                rules,
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
                rules,
            } => {
                if let Some(locks) = locks
                    && let Poll::Ready(reason) = locks.poll_lost(cx)
                {
                    let (protocol, rules) = (*protocol, rules.take());
                    let class = locks.class();
                    let rejection = Rejection::lost(reason).of_class(class.as_deref());
                    this.state.set(BodyState::Ended);
                    if let Some(rules) = rules {
                        rules.report(&rejection);
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

/// The inner body's default, for layers around this one that answer by themselves.
impl<B: Default> Default for ResponseBody<B> {
    fn default() -> Self {
        Self {
            state: BodyState::Inner {
                body: B::default(),
                locks: None,
                protocol: Protocol::Http,
                rules: None,
            },
        }
    }
}
