//! The course of one request, of HTTP or not: its key, its lock, the inner service.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use redlock_core::{AcquireOptions, LossReason, ResourceKeys};
use tower_service::Service;

use crate::{
    KeyError, KeyExtractor, Rejection, RequestLease,
    request::handler_locks::{HandlerLocks, RequestLocks},
    request::request_lock::{Locker, RequestLock},
};

/// A locker, and the key that names what it locks.
pub(crate) struct KeyedLocker<K> {
    pub(crate) locker: Locker,
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
type LockedRequest<Req> = Result<(Req, Option<RequestLock>), Rejection>;

/// An acquisition under way; boxed, for next to a round trip to the nodes that costs nothing.
pub(crate) type Acquiring<Req> = Pin<Box<dyn Future<Output = LockedRequest<Req>> + Send>>;

/// The first step of a request: whether it needs a lock, and from where.
pub(crate) enum Admission<Req> {
    /// It needs no lock.
    Unlocked(Req),
    /// Its handler takes the locks.
    InHandler(Req, Arc<HandlerLocks>),
    Refused(Rejection),
    Acquiring(Acquiring<Req>),
}

impl<K> KeyedLocker<K> {
    /// Names the resource and begins to lock it, as `options` say where they say something.
    pub(crate) fn admit<Req, C>(
        self: &Arc<Self>,
        mut request: Req,
        options: AcquireOptions,
    ) -> Admission<Req>
    where
        K: KeyExtractor<Req>,
        Req: Send + 'static,
        C: Carrier<Req> + 'static,
    {
        let keys = match self.key.extract_now(&mut request) {
            Some(Ok(None)) => return Admission::Unlocked(request),
            Some(Err(error)) => return Admission::Refused(error.into()),
            Some(Ok(Some(keys))) => Some(keys),
            None => None,
        };
        let locker = Arc::clone(self);
        Admission::Acquiring(Box::pin(async move {
            locker.acquire::<Req, C>(request, keys, options).await
        }))
    }

    /// Names the resource, if it is not named yet, takes the lock and leaves a view of the lease with the request.
    async fn acquire<Req, C>(
        &self,
        mut request: Req,
        keys: Option<ResourceKeys>,
        options: AcquireOptions,
    ) -> LockedRequest<Req>
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
        let lock = RequestLock::take(&self.locker, options, keys, carried.as_ref()).await?;
        // The view and never the guard: extensions are cloned, and a clone kept somewhere would hold on.
        C::carry(&mut request, lock.lease().clone());
        self.key.granted(&mut request, lock.lease());
        Ok((request, Some(lock)))
    }
}

impl<K> fmt::Debug for KeyedLocker<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLocker")
            .field("locker", &self.locker)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// Acquires the lock, makes the inner service ready and calls it.
    ///
    /// From the moment it holds the lock, it looks at the lease before each poll of the inner service.
    pub(crate) struct LockedCall<S, Req>
    where
        S: Service<Req>,
    {
        #[pin]
        state: CallState<S::Future, Req>,
        inner: S,
        // Dropped after `state`: the handler is gone before the resource is another's.
        locks: Option<RequestLocks>,
    }
}

pin_project! {
    #[project = CallStateProj]
    enum CallState<F, Req> {
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
    Served(R, Option<RequestLocks>),
    /// The inner service failed; nothing is held.
    Failed(E),
    /// It was not served, or not to its end; nothing is held.
    Refused(Rejection),
}

impl<S, Req> LockedCall<S, Req>
where
    S: Service<Req>,
{
    pub(crate) fn new(inner: S, admission: Admission<Req>) -> Self {
        let readying = |request| CallState::Readying {
            request: Some(request),
        };
        let (state, locks) = match admission {
            Admission::Refused(rejection) => {
                let rejection = Some(rejection);
                (CallState::Refused { rejection }, None)
            }
            Admission::Acquiring(acquiring) => (CallState::Acquiring { acquiring }, None),
            Admission::Unlocked(request) => (readying(request), None),
            Admission::InHandler(request, locks) => {
                (readying(request), Some(RequestLocks::Handler(locks)))
            }
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
                return Poll::Ready(Completion::Refused(lost(locks, reason)));
            }
            match this.state.as_mut().project() {
                CallStateProj::Refused { rejection } => {
                    let rejection = rejection.take().expect("it is taken with the state");
                    return Poll::Ready(Completion::Refused(rejection));
                }
                CallStateProj::Acquiring { acquiring } => match ready!(acquiring.as_mut().poll(cx))
                {
                    Ok((request, lock)) => {
                        *this.locks = lock.map(RequestLocks::Layer);
                        this.state.set(CallState::Readying {
                            request: Some(request),
                        });
                    }
                    Err(rejection) => return Poll::Ready(Completion::Refused(rejection)),
                },
                CallStateProj::Readying { request } => {
                    if let Err(error) = ready!(this.inner.poll_ready(cx)) {
                        return Poll::Ready(Completion::Failed(error));
                    }
                    let request = request.take().expect("it is taken with the state");
                    let future = this.inner.call(request);
                    this.state.set(CallState::Calling { future });
                }
                CallStateProj::Calling { future } => {
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
                            .map(|reason| Completion::Refused(lost(locks, reason))),
                    };
                }
                CallStateProj::Done => panic!("`ResponseFuture` polled after it was done"),
            }
        }
    }
}

fn lost(locks: &RequestLocks, reason: LossReason) -> Rejection {
    Rejection::lost(reason).of_class(locks.class().as_deref())
}

impl<S, Req> Future for LockedCall<S, Req>
where
    S: Service<Req>,
{
    type Output = Completion<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(self.as_mut().poll_outcome(cx));
        let mut this = self.project();
        // The finished future goes first, with all that it still owns; then whatever of the lock the outcome does
        // not have, and not only when the caller drops this future.
        this.state.set(CallState::Done);
        *this.locks = None;
        Poll::Ready(outcome)
    }
}

impl<S, Req> fmt::Debug for LockedCall<S, Req>
where
    S: Service<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            CallState::Refused { .. } => "Refused",
            CallState::Acquiring { .. } => "Acquiring",
            CallState::Readying { .. } => "Readying",
            CallState::Calling { .. } => "Calling",
            CallState::Done => "Done",
        })
    }
}
