use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use redlock_core::{AcquireError, AcquireOptions, LockGuard, LossReason, Redlock, ResourceKey};

use crate::{Lease, OnLost};

/// The lock that a request holds, and the watch over it; dropping it releases the lock.
pub(crate) struct Held {
    lease: Lease,
    // `Sync`, so that a response's body is if the inner one is.
    lost: Option<Pin<Box<dyn Future<Output = LossReason> + Send + Sync>>>,
    /// `None` if something further out in the same request holds the lock.
    guard: Option<LockGuard>,
}

impl Held {
    /// Locks `key` for a request that may hold leases already.
    ///
    /// If one of them is on that key, it is used: the request would wait for itself.
    pub(crate) async fn take(
        redlock: &Redlock,
        options: AcquireOptions,
        key: ResourceKey,
        carried: Option<&Lease>,
    ) -> Result<Self, AcquireError> {
        let (lease, guard) = match carried.and_then(|carried| carried.of(&key, redlock)) {
            Some(lease) => (lease.clone(), None),
            None => {
                let guard = redlock.acquire_with(key, options).await?;
                (guard.lease().clone(), Some(guard))
            }
        };
        Ok(Self {
            lease: Lease::new(lease, redlock, carried),
            lost: None,
            guard,
        })
    }

    /// Watches over the lease if its loss ends the request.
    pub(crate) fn watched(mut self, on_lost: OnLost) -> Self {
        if on_lost == OnLost::Abort {
            let lease = redlock_core::Lease::clone(&self.lease);
            self.lost = Some(Box::pin(async move { lease.lost().await }));
        }
        self
    }

    /// Calls `work` as work under the lock, which cannot take it again.
    pub(crate) fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        match self.guard {
            Some(_) => self.lease.within(work),
            None => work(),
        }
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Looks at the clock, and asks to be woken when the lease is lost.
    ///
    /// To be called before each poll of what the lock protects; not to be called again once ready.
    pub(crate) fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LossReason> {
        let Some(lost) = &mut self.lost else {
            return Poll::Pending;
        };
        match ready!(lost.as_mut().poll(cx)) {
            // Whoever holds it for this request has decided to hold it for less long.
            LossReason::Released if self.guard.is_none() => {
                self.lost = None;
                Poll::Pending
            }
            reason => Poll::Ready(reason),
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("lease", &self.lease)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}
