use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use redlock_core::{AcquireError, AcquireOptions, LossReason, Redlock, ResourceKeys};

use crate::{OnLost, RequestLease, slot::Slot};

/// A lock that a request holds, and the watch over it; dropping it releases the lock.
pub(crate) struct Held {
    lease: RequestLease,
    // `Sync`, so that a response's body is if the inner one is.
    lost: Option<Pin<Box<dyn Future<Output = LossReason> + Send + Sync>>>,
    /// `None` if something further out in the same request holds the lock.
    slot: Option<Arc<Slot>>,
}

impl Held {
    /// Locks `keys` for a request that may hold leases already.
    ///
    /// If one of them is on all of these keys, it is used: the request would wait for itself.
    /// The lease is watched if its loss ends the request.
    pub(crate) async fn take(
        redlock: &Redlock,
        options: AcquireOptions,
        on_lost: OnLost,
        keys: ResourceKeys,
        carried: Option<&RequestLease>,
    ) -> Result<Self, AcquireError> {
        let (lease, slot) = match carried.and_then(|carried| carried.of(&keys, redlock)) {
            Some(same) => (same.again(carried), None),
            None => {
                let guard = redlock.acquire_all_with(keys, options).await?;
                let lease = guard.lease().clone();
                let slot = Arc::new(Slot::new(guard, on_lost));
                (
                    RequestLease::new(lease, redlock, &slot, carried),
                    Some(slot),
                )
            }
        };
        let watched = lease.view().clone();
        let lost = (on_lost == OnLost::Abort)
            .then(|| Box::pin(async move { watched.lost().await }) as Pin<Box<_>>);
        Ok(Self { lease, lost, slot })
    }

    /// Calls `work` as work under the lock, which cannot take it again.
    ///
    /// A lock that was taken out may be released by another task, for which such work can wait.
    pub(crate) fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        if self.owns() {
            self.lease.view().within(work)
        } else {
            work()
        }
    }

    pub(crate) fn lease(&self) -> &RequestLease {
        &self.lease
    }

    /// Returns whether the response's body must not outlive the lock: nobody has taken it out.
    pub(crate) fn goes_on(&self) -> bool {
        self.slot.as_ref().is_none_or(|slot| slot.is_full())
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
            LossReason::Released if !self.owns() => {
                self.lost = None;
                Poll::Pending
            }
            reason => Poll::Ready(reason),
        }
    }

    /// Returns the lease, if the guard is here.
    pub(crate) fn owned(&self) -> Option<&RequestLease> {
        self.owns().then_some(&self.lease)
    }

    /// Returns whether the guard is here.
    fn owns(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| slot.is_full())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            drop(slot.take());
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("lease", &self.lease)
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}
