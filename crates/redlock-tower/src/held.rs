use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use redlock_core::{AcquireOptions, Lease, LossReason, Mode, ResourceKeys};
use tokio::time::Instant;

use crate::{
    OnLost, Rejection, RequestLease,
    hold_time::HoldTime,
    slot::{Ending, Slot},
    terms::Terms,
};

/// A lock that a request holds, and the watch over it; dropping it releases the lock.
pub(crate) struct Held {
    lease: RequestLease,
    // `Sync`, so that a response's body is if the inner one is.
    lost: Option<Pin<Box<dyn Future<Output = LossReason> + Send + Sync>>>,
    /// Where the guard is; `None` if it was taken out before something further in used the lease.
    slot: Option<Arc<Slot>>,
    /// How long it is held; `None` if something further out in the same request holds the lock.
    hold: Option<HoldTime>,
}

impl Held {
    /// Locks `keys` for a request, by `options` or else by the layer's; `carried` has the request's leases.
    ///
    /// It uses a lease of the request that covers all keys in a sufficient mode: the request would wait for itself.
    /// A released lease is not used, and a lost one refuses the request.
    /// The lease is watched if its loss ends the request.
    pub(crate) async fn take(
        terms: &Terms,
        options: AcquireOptions,
        keys: ResourceKeys,
        carried: Option<&RequestLease>,
    ) -> Result<Self, Rejection> {
        let Terms {
            redlock, on_lost, ..
        } = terms;
        let on_lost = *on_lost;
        let mode = options.clone().or(&terms.options).mode();
        let is_enough = |held: &RequestLease| {
            let is_alone = held.mode() == Mode::Exclusive;
            (is_alone || mode == Mode::Shared) && terms.are_met_by(held.keys(), &keys)
        };
        let same = match carried.and_then(|carried| carried.of(redlock, is_enough)) {
            Some(same) => unless_over(same).await?,
            None => None,
        };
        let (lease, slot, hold) = match same {
            Some(same) => {
                // A guard that was taken out belongs to something further out, which alone can release it.
                let slot = same.slot().filter(|slot| slot.is_full());
                (same.again(carried), slot, None)
            }
            None => {
                let began = Instant::now();
                let guard = terms.acquire(keys, options).await?;
                let hold = HoldTime::begin(terms, began.elapsed());
                let lease = guard.lease().clone();
                let slot = Arc::new(Slot::new(guard, on_lost));
                let lease = RequestLease::new(lease, redlock, &slot, hold.waited(), carried);
                (lease, Some(slot), Some(hold))
            }
        };
        let watched = Lease::clone(&lease);
        let lost = (on_lost == OnLost::Abort)
            .then(|| Box::pin(async move { watched.lost().await }) as Pin<Box<_>>);
        Ok(Self {
            lease,
            lost,
            slot,
            hold,
        })
    }

    /// Calls `work` as work under the lock, which cannot take it again.
    ///
    /// A lock that was taken out may be released by another task, for which such work can wait.
    pub(crate) fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        if self.owns() {
            self.lease.within(work)
        } else {
            work()
        }
    }

    pub(crate) fn lease(&self) -> &RequestLease {
        &self.lease
    }

    /// Returns whether the response's body must not outlive the lock, because the guard was not taken out.
    pub(crate) fn goes_on(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| !slot.is_taken_out())
    }

    /// Lets the lock go although the response's body goes on.
    pub(crate) fn let_go(&mut self) {
        self.end(Ending::AsAsked);
    }

    /// Looks at the clock, and asks to be woken when the lease is lost.
    ///
    /// To be called before each poll of what the lock protects; not to be called again once ready.
    pub(crate) fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LossReason> {
        let Some(lost) = &mut self.lost else {
            return Poll::Pending;
        };
        match ready!(lost.as_mut().poll(cx)) {
            // The holder of the guard has decided to release it before the request ends.
            LossReason::Released if self.may_be_outlived() => {
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
        self.hold.is_some() && self.slot.as_ref().is_some_and(|slot| slot.is_full())
    }

    /// Returns whether the request goes on though the lock was released: not if the request further out that held it is
    /// over, or if something further out had taken it out before.
    fn may_be_outlived(&self) -> bool {
        self.slot
            .as_ref()
            .is_some_and(|slot| slot.may_be_outlived())
    }

    fn end(&mut self, ending: Ending) {
        let Some(hold) = self.hold.take() else {
            return;
        };
        let Some(guard) = self.slot.as_ref().and_then(|slot| slot.end(ending)) else {
            return;
        };
        hold.end(&self.lease);
        drop(guard);
    }
}

/// Returns `lease` while it can be relied on, and `None` if the request is to have one of its own.
async fn unless_over(lease: &RequestLease) -> Result<Option<&RequestLease>, Rejection> {
    if lease.is_held() {
        return Ok(Some(lease));
    }
    // In a box of its own, because every request has to carry the room that this takes; it is ready at once.
    match Box::pin(lease.lost()).await {
        LossReason::Released => Ok(None),
        // The request that has lost it is over, and this is another that carries what that one had.
        _ if lease.slot().is_none() => Ok(None),
        reason => Err(Rejection::lost(reason)),
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end(Ending::Over);
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
