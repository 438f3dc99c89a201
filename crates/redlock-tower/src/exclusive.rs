//! The course of one request, whatever its kind.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{
    Rejection,
    locks::Locks,
    shared::{Acquiring, Start},
};

pin_project! {
    /// Acquires the lock, makes the inner service ready and calls it.
    ///
    /// From the moment it holds the lock, it looks at the lease before each poll of the inner service.
    pub(crate) struct Exclusive<S, Req>
    where
        S: Service<Req>,
    {
        #[pin]
        state: State<S::Future, Req>,
        inner: S,
        // Dropped after `state`: the handler is gone before the resource is another's.
        locks: Option<Locks>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, Req> {
        Refused { rejection: Option<Rejection> },
        Acquiring { acquiring: Acquiring<Req> },
        Readying { request: Option<Req> },
        Calling { #[pin] future: F },
        Done,
    }
}

/// What became of a request.
pub(crate) enum Completion<R, E> {
    /// It was served, and still holds the locks that it had.
    Served(R, Option<Locks>),
    /// The inner service failed; nothing is held.
    Failed(E),
    /// It was not served, or not to its end; nothing is held.
    Refused(Rejection),
}

impl<S, Req> Exclusive<S, Req>
where
    S: Service<Req>,
{
    pub(crate) fn new(inner: S, start: Start<Req>) -> Self {
        let readying = |request| State::Readying {
            request: Some(request),
        };
        let (state, locks) = match start {
            Start::Refused(rejection) => {
                let rejection = Some(rejection);
                (State::Refused { rejection }, None)
            }
            Start::Acquiring(acquiring) => (State::Acquiring { acquiring }, None),
            Start::Unlocked(request) => (readying(request), None),
            Start::Attended(request, desk) => (readying(request), Some(Locks::Handler(desk))),
        };
        Self {
            state,
            inner,
            locks,
        }
    }

    fn poll_outcome(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Completion<S::Response, S::Error>> {
        let mut this = self.project();
        loop {
            if let Some(locks) = this.locks
                && let Poll::Ready(reason) = locks.poll_lost(cx)
            {
                return Poll::Ready(Completion::Refused(Rejection::lost(reason)));
            }
            match this.state.as_mut().project() {
                StateProj::Refused { rejection } => {
                    let rejection = rejection.take().expect("it is taken with the state");
                    return Poll::Ready(Completion::Refused(rejection));
                }
                StateProj::Acquiring { acquiring } => match ready!(acquiring.as_mut().poll(cx)) {
                    Ok((request, held)) => {
                        *this.locks = held.map(Locks::Layer);
                        this.state.set(State::Readying {
                            request: Some(request),
                        });
                    }
                    Err(rejection) => return Poll::Ready(Completion::Refused(rejection)),
                },
                StateProj::Readying { request } => {
                    if let Err(error) = ready!(this.inner.poll_ready(cx)) {
                        return Poll::Ready(Completion::Failed(error));
                    }
                    let request = request.take().expect("it is taken with the state");
                    let future = this.inner.call(request);
                    this.state.set(State::Calling { future });
                }
                StateProj::Calling { future } => {
                    let Some(locks) = this.locks else {
                        return Poll::Ready(match ready!(future.poll(cx)) {
                            Ok(response) => Completion::Served(response, None),
                            Err(error) => Completion::Failed(error),
                        });
                    };
                    return match locks.within(|| future.poll(cx)) {
                        Poll::Ready(Ok(response)) => {
                            Poll::Ready(Completion::Served(response, this.locks.take()))
                        }
                        Poll::Ready(Err(error)) => Poll::Ready(Completion::Failed(error)),
                        // The handler may have taken a lock in this poll: its loss must wake this task too.
                        Poll::Pending => locks
                            .poll_lost(cx)
                            .map(|reason| Completion::Refused(Rejection::lost(reason))),
                    };
                }
                StateProj::Done => panic!("`ResponseFuture` polled after it was done"),
            }
        }
    }
}

impl<S, Req> Future for Exclusive<S, Req>
where
    S: Service<Req>,
{
    type Output = Completion<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(self.as_mut().poll_outcome(cx));
        let mut this = self.project();
        // The finished future goes first, with all that it still owns; then whatever of the lock the outcome does
        // not have, and not only when the caller drops this future.
        this.state.set(State::Done);
        *this.locks = None;
        Poll::Ready(outcome)
    }
}

impl<S, Req> fmt::Debug for Exclusive<S, Req>
where
    S: Service<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Refused { .. } => "Refused",
            State::Acquiring { .. } => "Acquiring",
            State::Readying { .. } => "Readying",
            State::Calling { .. } => "Calling",
            State::Done => "Done",
        })
    }
}
