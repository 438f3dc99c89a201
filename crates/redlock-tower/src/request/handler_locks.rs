//! The locks of one request: that of its layer, or those that its handler takes.

use std::{
    borrow::Cow,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    task::{Context, Poll},
};

use redlock_core::{LossReason, ResourceKeys};

use crate::{
    Rejection, RequestLease,
    metrics::RequestOutcome,
    request::request_lock::{Locker, RequestLock},
};

/// The locks of one request; dropping it releases them.
#[derive(Debug)]
pub(crate) enum RequestLocks {
    /// That of the layer.
    Layer(RequestLock),
    /// Those that the handler has taken so far.
    Handler(Arc<HandlerLocks>),
}

/// The place where a handler takes its locks, and leaves them for the layer around it to hold and to watch.
#[derive(Debug)]
pub(crate) struct HandlerLocks {
    locker: Locker,
    locks: Mutex<Vec<RequestLock>>,
    /// Why the first of those was refused that could not be taken.
    refused: OnceLock<Rejection>,
}

/// A reference to the locks, in the extensions of a request; it ends with the request.
#[derive(Clone, Debug)]
pub(crate) struct HandlerLocksRef(Weak<HandlerLocks>);

impl HandlerLocks {
    pub(crate) fn new(locker: Locker) -> Arc<Self> {
        Arc::new(Self {
            locker,
            locks: Mutex::default(),
            refused: OnceLock::new(),
        })
    }

    pub(crate) fn downgrade(self: &Arc<Self>) -> HandlerLocksRef {
        HandlerLocksRef(Arc::downgrade(self))
    }

    /// Returns whether the handler could not take a lock.
    pub(crate) fn has_refused(&self) -> bool {
        self.refused.get().is_some()
    }

    /// Returns what is counted of a request that the handler has answered by itself.
    pub(crate) fn outcome(&self) -> RequestOutcome {
        if !self.locks().is_empty() {
            return RequestOutcome::Served;
        }
        let refused = self.refused.get().map(Rejection::kind);
        refused.map_or(RequestOutcome::Unlocked, RequestOutcome::Refused)
    }

    fn locks(&self) -> MutexGuard<'_, Vec<RequestLock>> {
        // Nothing panics while it is locked, and the list is whole at every moment.
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg_attr(
    not(feature = "axum"),
    expect(dead_code, reason = "its users are extractors of axum")
)]
impl HandlerLocksRef {
    /// Notes that the handler is told of a lock that it cannot have.
    pub(crate) fn refused(&self, rejection: &Rejection) {
        if let Some(locks) = self.0.upgrade() {
            // The first stays.
            let _ = locks.refused.set(rejection.clone());
        }
    }

    /// Takes a lock for a request that may hold leases already; `None` if the request is over.
    pub(crate) async fn take(
        &self,
        keys: ResourceKeys,
        options: redlock_core::AcquireOptions,
        carried: Option<&RequestLease>,
    ) -> Option<Result<RequestLease, Rejection>> {
        let locker = self.0.upgrade()?.locker.clone();
        let lock = match RequestLock::take(&locker, options, keys, carried).await {
            Ok(lock) => lock,
            Err(rejection) => {
                self.refused(&rejection);
                return Some(Err(rejection));
            }
        };
        let lease = lock.lease().clone();
        self.0.upgrade()?.locks().push(lock);
        // What follows in the handler is polled under it.
        next_poll().await;
        Some(Ok(lease))
    }
}

impl RequestLocks {
    /// Calls `work` as work under the locks, which cannot take them again.
    pub(crate) fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        match self {
            Self::Layer(lock) => lock.within(work),
            Self::Handler(locks) => {
                // The handler takes more of them meanwhile.
                let taken = locks.locks();
                let leases: Vec<RequestLease> = taken
                    .iter()
                    .filter_map(RequestLock::owned)
                    .cloned()
                    .collect();
                drop(taken);
                within(&leases, work)
            }
        }
    }

    /// Returns the class of the first of them, empty if it has none; `None` if there is no lock.
    pub(crate) fn class(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Layer(lock) => Some(lock.lease().class().unwrap_or_default().into()),
            Self::Handler(locks) => {
                let taken = locks.locks();
                let class =
                    |lock: &RequestLock| lock.lease().class().unwrap_or_default().to_owned();
                let refused = || {
                    locks
                        .refused
                        .get()
                        .and_then(Rejection::class)
                        .map(str::to_owned)
                };
                taken.first().map(class).or_else(refused).map(Cow::Owned)
            }
        }
    }

    /// Looks at each of them as [`RequestLock::poll_lost`] does.
    pub(crate) fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LossReason> {
        match self {
            Self::Layer(lock) => lock.poll_lost(cx),
            Self::Handler(locks) => {
                for lock in &mut *locks.locks() {
                    if let Poll::Ready(reason) = lock.poll_lost(cx) {
                        return Poll::Ready(reason);
                    }
                }
                Poll::Pending
            }
        }
    }

    /// Lets them go with the response's head, or with what else is the end of the work; what goes on is not ended by it.
    pub(crate) fn let_go(mut self) {
        match &mut self {
            Self::Layer(lock) => lock.let_go(),
            Self::Handler(locks) => locks.locks().iter_mut().for_each(RequestLock::let_go),
        }
    }

    /// Keeps those that the request holds beyond the response's head; `None` if there are none.
    pub(crate) fn beyond_the_head(self) -> Option<Self> {
        let goes_on = match &self {
            Self::Layer(lock) => lock.goes_on(),
            Self::Handler(locks) => {
                let mut taken = locks.locks();
                taken.retain(RequestLock::goes_on);
                !taken.is_empty()
            }
        };
        goes_on.then_some(self)
    }
}

fn within<R>(leases: &[RequestLease], work: impl FnOnce() -> R) -> R {
    // `dyn`, because a closure in a closure in a closure would be a type without end.
    fn nested(leases: &[RequestLease], work: &mut dyn FnMut()) {
        match leases.split_first() {
            None => work(),
            Some((lease, rest)) => lease.within(|| nested(rest, work)),
        }
    }
    let mut work = Some(work);
    let mut done = None;
    nested(leases, &mut || done = work.take().map(|work| work()));
    done.expect("it is called once")
}

/// Waits until the task is polled the next time, which is at once.
async fn next_poll() {
    let mut was_polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut was_polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
