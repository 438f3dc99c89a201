//! The lock of one request: how it is taken, watched and released.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use redlock_core::{
    AcquireOptions, Lease, LockGuard, LossReason, Mode, Redlock, ResourceKey, ResourceKeys,
    SlotGuard, Slots,
};
use tokio::time::Instant;

use crate::{
    KeyError, LossPolicy, Rejection, RequestLease,
    lease::{GuardCell, ReleaseReason},
    retry_after::HoldAverage,
};

/// The client and the settings with which a layer locks.
#[derive(Clone, Debug)]
pub(crate) struct Locker {
    pub(crate) redlock: Redlock,
    options: AcquireOptions,
    on_lost: LossPolicy,
    /// How many requests may hold a key at once, if not one.
    slots: Option<usize>,
    /// The average of all its requests.
    average: Arc<HoldAverage>,
}

impl Locker {
    pub(crate) fn new(redlock: Redlock, options: AcquireOptions, on_lost: LossPolicy) -> Self {
        Self {
            // A scope around the layer may end with the head of the response, and its requests must not share a lock.
            redlock: redlock.outside_scopes(),
            options,
            on_lost,
            slots: None,
            average: Arc::default(),
        }
    }

    /// Returns the same with `slots` slots for each key.
    pub(crate) fn with_slots(self, slots: Option<usize>) -> Self {
        Self {
            slots,
            average: Arc::new(HoldAverage::of_slots(slots.unwrap_or(1))),
            ..self
        }
    }

    /// Acquires what a request is to hold, as `options` say, or else the layer's options.
    async fn acquire(
        &self,
        keys: ResourceKeys,
        options: AcquireOptions,
    ) -> Result<LockGuard, Rejection> {
        let options = options.or(&self.options);
        // Clones allocate nothing, and a refusal may take its time.
        let (of, named) = (options.clone(), keys.clone());
        let acquired = match self.slots_of(&keys)? {
            None => self.redlock.acquire_all_with(keys, options).await,
            Some(slots) => {
                // In a box of its own, because every request has to carry the room that this takes.
                let acquired = Box::pin(slots.acquire_with(options)).await;
                acquired.map(SlotGuard::into_guard)
            }
        };
        acquired
            .map_err(|error| Rejection::acquire(error, &self.average).of_class(of.class_of(&named)))
    }

    /// Returns whether a lease on `held` is what a request for `keys` needs.
    fn are_met_by(&self, held: &[ResourceKey], keys: &ResourceKeys) -> bool {
        match self.slots_of(keys) {
            Ok(None) => keys.iter().all(|key| held.contains(key)),
            Ok(Some(slots)) => held.iter().any(|key| slots.slot_of(key).is_some()),
            Err(_) => false,
        }
    }

    /// Returns the slots of what a request names, if the layer has slots.
    fn slots_of(&self, keys: &ResourceKeys) -> Result<Option<Slots>, KeyError> {
        let Some(count) = self.slots else {
            return Ok(None);
        };
        match keys.as_slice() {
            [key] => Ok(Some(self.redlock.slots(key, count)?)),
            _ => Err(KeyError::misuse(ONE_KEY)),
        }
    }

    /// Returns the same, but for what `options` say.
    pub(crate) fn with(&self, options: AcquireOptions) -> Self {
        Self {
            options: options.or(&self.options),
            ..self.clone()
        }
    }
}

/// A lock that a request holds, and the watch over it; dropping it releases the lock.
pub(crate) struct RequestLock {
    lease: RequestLease,
    // `Sync`, so that a response's body is if the inner one is.
    lost: Option<Pin<Box<dyn Future<Output = LossReason> + Send + Sync>>>,
    /// Where the guard is; `None` if it was taken out before something further in used the lease.
    cell: Option<Arc<GuardCell>>,
    /// How long it is held; `None` if something further out in the same request holds the lock.
    timer: Option<HoldTimer>,
}

impl RequestLock {
    /// Locks `keys` for a request, by `options` or else by the layer's; `carried` has the request's leases.
    ///
    /// It uses a lease of the request that covers all keys in a sufficient mode: the request would wait for itself.
    /// A released lease is not used, and a lost one refuses the request.
    /// The lease is watched if its loss ends the request.
    pub(crate) async fn take(
        locker: &Locker,
        options: AcquireOptions,
        keys: ResourceKeys,
        carried: Option<&RequestLease>,
    ) -> Result<Self, Rejection> {
        let Locker {
            redlock, on_lost, ..
        } = locker;
        let on_lost = *on_lost;
        let mode = options.clone().or(&locker.options).mode();
        let is_enough = |held: &RequestLease| {
            let is_alone = held.mode() == Mode::Exclusive;
            (is_alone || mode == Mode::Shared) && locker.are_met_by(held.keys(), &keys)
        };
        let same = match carried.and_then(|carried| carried.of(redlock, is_enough)) {
            Some(same) => unless_over(same).await?,
            None => None,
        };
        let (lease, cell, timer) = match same {
            Some(same) => {
                // A guard that was taken out belongs to something further out, which alone can release it.
                let cell = same.guard_cell().filter(|cell| cell.is_full());
                (same.again(carried), cell, None)
            }
            None => {
                let began = Instant::now();
                let guard = locker.acquire(keys, options).await?;
                let timer = HoldTimer::begin(locker, began.elapsed());
                let lease = guard.lease().clone();
                let cell = Arc::new(GuardCell::new(guard, on_lost));
                let lease = RequestLease::new(lease, redlock, &cell, timer.waited(), carried);
                (lease, Some(cell), Some(timer))
            }
        };
        let watched = Lease::clone(&lease);
        let lost = (on_lost == LossPolicy::Abort)
            .then(|| Box::pin(async move { watched.lost().await }) as Pin<Box<_>>);
        Ok(Self {
            lease,
            lost,
            cell,
            timer,
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
        self.cell.as_ref().is_some_and(|cell| !cell.is_taken_out())
    }

    /// Lets the lock go although the response's body goes on.
    pub(crate) fn let_go(&mut self) {
        self.end(ReleaseReason::AfterHead);
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
        self.timer.is_some() && self.cell.as_ref().is_some_and(|cell| cell.is_full())
    }

    /// Returns whether the request goes on though the lock was released: not if the request further out that held it is
    /// over, or if something further out had taken it out before.
    fn may_be_outlived(&self) -> bool {
        self.cell
            .as_ref()
            .is_some_and(|cell| cell.may_be_outlived())
    }

    fn end(&mut self, reason: ReleaseReason) {
        let Some(timer) = self.timer.take() else {
            return;
        };
        let Some(guard) = self.cell.as_ref().and_then(|cell| cell.end(reason)) else {
            return;
        };
        timer.end(&self.lease);
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
        _ if lease.guard_cell().is_none() => Ok(None),
        reason => Err(Rejection::lost(reason).of_class(lease.class())),
    }
}

impl Drop for RequestLock {
    fn drop(&mut self) {
        self.end(ReleaseReason::RequestOver);
    }
}

impl fmt::Debug for RequestLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestLock")
            .field("lease", &self.lease)
            .field("cell", &self.cell)
            .finish_non_exhaustive()
    }
}

/// Measures how long a request has waited for its lock, and how long it holds it: for the log and the average, and no
/// deadline.
#[derive(Debug)]
struct HoldTimer {
    redlock: Redlock,
    average: Arc<HoldAverage>,
    waited: Duration,
    since: Instant,
}

impl HoldTimer {
    /// Begins the time of a request that has waited for `waited` and has its lock.
    fn begin(locker: &Locker, waited: Duration) -> Self {
        Self {
            redlock: locker.redlock.clone(),
            average: Arc::clone(&locker.average),
            waited,
            since: Instant::now(),
        }
    }

    fn waited(&self) -> Duration {
        self.waited
    }

    /// Ends the time, because the request releases its lock.
    fn end(self, lease: &RequestLease) {
        let held = self.since.elapsed();
        self.average.add(held);
        tracing::debug!(
            target: crate::TARGET,
            client = self.redlock.id(),
            namespace = &*self.redlock.namespace(),
            class = lease.class(),
            token = lease.token().get(),
            waited = ?self.waited,
            ?held,
            "a request has held its lock"
        );
    }
}

const ONE_KEY: &str = "a layer with slots locks one key of a request, and it names several";
