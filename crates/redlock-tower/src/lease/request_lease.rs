//! A request's view of its lease.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use redlock_core::{Lease, LockGuard, Redlock};

use crate::LossPolicy;

/// A view of the lease that the request holds: a [`redlock_core::Lease`], to which it derefs, and what a request adds.
///
/// [`RedlockLayer`](crate::RedlockLayer) puts it into the request's extensions.
/// With the feature `axum` it is an extractor, whose rejection says that there is no lease.
/// Take `Option<RequestLease>` in handlers that are also reached without a lock.
/// If two layers have locked something for the request, this is the lease of the inner layer, and
/// [`outer`](Self::outer) returns the other one.
///
/// A view keeps nothing locked and prolongs nothing; [`into_owned`](Self::into_owned) takes the lock out of the request.
/// It reads the lease of the request until the end: after a release, it reads as released, and after the handler has
/// taken the lock out, it reads the lease that the handler has.
///
/// # What the lease names
///
/// [`Lease::key`] is the name that the layer's key extractor has returned, and no log line repeats it.
/// With [slots](crate::RedlockLayerBuilder::slots), it is the name of the slot, such as `tenant:7#2`.
/// [`Lease::token`] is then greater than that of every earlier lease on the same slot; a resource cannot compare the
/// tokens of different slots.
///
/// # Examples
///
/// ```
/// # use axum::{Router, body::Body, http::Request, routing::post};
/// # use redlock_core::Redlock;
/// # use redlock_tower::{PathKey, RedlockLayer};
/// # use tower::ServiceExt;
/// use redlock_tower::RequestLease;
///
/// async fn pay(lease: RequestLease) -> &'static str {
///     assert_eq!(lease.key().as_str(), "order:42");
///     // For the resource, which refuses older ones:
///     let token = lease.token();
/// #   let _ = token;
///     for page in 0..3 {
///         // Work that blocks its thread cannot be dropped: it asks before each step that matters.
///         if !may_go_on(&lease) {
///             return "lost";
///         }
/// #       let _ = page;
///     }
///     // Work that can be dropped ends with the lease.
///     match lease.run(async { "paid" }).await {
///         Ok(paid) => paid,
///         Err(_lost) => "lost",
///     }
/// }
///
/// /// Knows leases, and nothing of requests.
/// fn may_go_on(lease: &redlock_core::Lease) -> bool {
///     lease.is_held() && !lease.is_endangered()
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// # let lock = RedlockLayer::new(redlock.clone(), PathKey::new("order", "order_id"));
/// # let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(lock));
/// # let request = Request::post("/orders/42/pay").body(Body::empty())?;
/// # assert!(app.oneshot(request).await?.status().is_success());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RequestLease {
    lease: Lease,
    /// The client it comes from: equal keys of two clients are two resources.
    client: u64,
    /// The guard, while the request has it.
    cell: Weak<GuardCell>,
    waited: Duration,
    outer: Option<Arc<Self>>,
}

impl RequestLease {
    /// Returns how long the request has waited for its lock, from the layer's call of the client to the client's answer.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns the lease that an outer layer took for the same request.
    pub fn outer(&self) -> Option<&Self> {
        self.outer.as_deref()
    }

    /// Makes a view of a lease of `client` whose guard is in `cell`, for a request that already has `outer`.
    pub(crate) fn new(
        lease: Lease,
        client: &Redlock,
        cell: &Arc<GuardCell>,
        waited: Duration,
        outer: Option<&Self>,
    ) -> Self {
        Self {
            lease,
            client: client.id(),
            cell: Arc::downgrade(cell),
            waited,
            outer: outer.cloned().map(Arc::new),
        }
    }

    /// Makes another view of this lease, for a request that already has `outer`.
    pub(crate) fn again(&self, outer: Option<&Self>) -> Self {
        Self {
            outer: outer.cloned().map(Arc::new),
            ..self.clone()
        }
    }

    /// Returns where the guard is, unless the request is over.
    pub(crate) fn guard_cell(&self) -> Option<Arc<GuardCell>> {
        self.cell.upgrade()
    }

    /// Returns the lease of this client on what `is_enough` says, if it is this one or one further out.
    pub(crate) fn of(&self, client: &Redlock, is_enough: impl Fn(&Self) -> bool) -> Option<&Self> {
        let mut leases = std::iter::successors(Some(self), |lease| lease.outer());
        leases.find(|lease| lease.client == client.id() && is_enough(lease))
    }
}

/// The lease as the client has it: each method reads it, and none prolongs it.
impl Deref for RequestLease {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl From<RequestLease> for Lease {
    fn from(lease: RequestLease) -> Self {
        lease.lease
    }
}

/// The place where a request keeps its guard, and from which its handler can take it.
///
/// Views of the lease lead here, and are cloned; so they do not keep it, and it is emptied with the request.
#[derive(Debug)]
pub(crate) struct GuardCell {
    content: Mutex<CellContent>,
    on_lost: LossPolicy,
}

/// The guard of a request, or why it is no longer here.
#[derive(Debug)]
enum CellContent {
    Guard(LockGuard),
    /// The handler has it.
    TakenOut,
    Ended(ReleaseReason),
}

/// Why a request let its lock go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReleaseReason {
    /// Its layer was to hold it for no longer, though the body goes on.
    AfterHead,
    /// The request is over.
    RequestOver,
}

impl GuardCell {
    /// Makes a cell with `guard` in it, and what is to happen when its lease is lost.
    pub(crate) fn new(guard: LockGuard, on_lost: LossPolicy) -> Self {
        Self {
            content: Mutex::new(CellContent::Guard(guard)),
            on_lost,
        }
    }

    /// Takes the guard for the handler, if it is still here.
    pub(crate) fn take(&self) -> Option<LockGuard> {
        self.empty(CellContent::TakenOut)
    }

    /// Takes the guard to let it go, if it is still here.
    pub(crate) fn end(&self, reason: ReleaseReason) -> Option<LockGuard> {
        self.empty(CellContent::Ended(reason))
    }

    /// Returns what the layer does when the lease is lost.
    pub(crate) fn on_lost(&self) -> LossPolicy {
        self.on_lost
    }

    /// Returns whether the guard is still here.
    pub(crate) fn is_full(&self) -> bool {
        matches!(*self.look(), CellContent::Guard(_))
    }

    /// Returns whether the handler has the guard.
    pub(crate) fn is_taken_out(&self) -> bool {
        matches!(*self.look(), CellContent::TakenOut)
    }

    /// Returns whether the lock may end before the request: the handler took it, or the layer was to release it early.
    pub(crate) fn may_be_outlived(&self) -> bool {
        matches!(
            *self.look(),
            CellContent::TakenOut | CellContent::Ended(ReleaseReason::AfterHead)
        )
    }

    /// Takes the guard, and leaves why it is not here; if it was gone before, the reason of that stays.
    fn empty(&self, reason: CellContent) -> Option<LockGuard> {
        let mut content = self.look();
        if !matches!(*content, CellContent::Guard(_)) {
            return None;
        }
        match std::mem::replace(&mut *content, reason) {
            CellContent::Guard(guard) => Some(guard),
            CellContent::TakenOut | CellContent::Ended(_) => None,
        }
    }

    fn look(&self) -> MutexGuard<'_, CellContent> {
        // Nothing panics while it is locked.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
