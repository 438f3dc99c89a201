use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{Hold, Rejection, ResponseBody, acquire::Acquiring, held::Held};

pin_project! {
    /// The response's future of [`RedlockService`](crate::RedlockService).
    ///
    /// It names the resource, acquires the lock, makes the inner service ready and calls it.
    /// From the moment it holds the lock, it looks at the lease before each poll of the inner
    /// service; when the lease is lost, the inner future is dropped and the answer is 503.
    ///
    /// # Panics
    ///
    /// If it is polled outside a tokio runtime with its timer enabled, or after it is done.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any point drops the inner future, and then gives up the place in the queue and
    /// the lock.
    /// See [the crate page](crate#cancel-safety) for when a server does that.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, ReqBody>
    where
        S: Service<Request<ReqBody>>,
    {
        #[pin]
        state: State<S::Future, ReqBody>,
        inner: S,
        hold: Hold,
        // Dropped after `state`: the handler is gone before the resource is another's.
        held: Option<Held>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, ReqBody> {
        Acquiring { acquiring: Acquiring<ReqBody> },
        Readying { request: Option<Request<ReqBody>> },
        Calling { #[pin] future: F },
        Done,
    }
}

impl<S, ReqBody> ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    pub(crate) fn new(inner: S, hold: Hold, acquiring: Acquiring<ReqBody>) -> Self {
        Self {
            state: State::Acquiring { acquiring },
            inner,
            hold,
            held: None,
        }
    }
}

impl<S, ReqBody, ResBody> Future for ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    ResBody: Body<Data = Bytes>,
{
    type Output = Result<Response<ResponseBody<ResBody>>, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let output = ready!(self.as_mut().poll_response(cx));
        let mut this = self.project();
        this.state.set(State::Done);
        // Whatever of the lock was not handed to the body ends here, and not only when the caller
        // drops this future.
        *this.held = None;
        Poll::Ready(output)
    }
}

impl<S, ReqBody, ResBody> ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    ResBody: Body<Data = Bytes>,
{
    fn poll_response(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<ResponseBody<ResBody>>, S::Error>> {
        let mut this = self.project();
        loop {
            if let Some(held) = this.held
                && let Poll::Ready(reason) = held.poll_lost(cx)
            {
                return Poll::Ready(Ok(Rejection::lost(reason).into_response()));
            }
            match this.state.as_mut().project() {
                StateProj::Acquiring { acquiring } => match ready!(acquiring.as_mut().poll(cx)) {
                    Ok((request, held)) => {
                        *this.held = held;
                        this.state.set(State::Readying {
                            request: Some(request),
                        });
                    }
                    Err(rejection) => return Poll::Ready(Ok(rejection.into_response())),
                },
                StateProj::Readying { request } => {
                    ready!(this.inner.poll_ready(cx))?;
                    let request = request.take().expect("the request is taken with the state");
                    let future = this.inner.call(request);
                    this.state.set(State::Calling { future });
                }
                StateProj::Calling { future } => {
                    let response = ready!(future.poll(cx))?;
                    // The finished future goes first, with all that it still owns.
                    this.state.set(State::Done);
                    let held = this.held.take().filter(|_| *this.hold == Hold::Body);
                    return Poll::Ready(Ok(response.map(|body| ResponseBody::new(body, held))));
                }
                StateProj::Done => panic!("`ResponseFuture` polled after it was done"),
            }
        }
    }
}

impl<S, ReqBody> fmt::Debug for ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Acquiring { .. } => "acquiring",
            State::Readying { .. } => "readying",
            State::Calling { .. } => "calling",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
