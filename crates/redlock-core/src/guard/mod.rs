mod held;

use std::{fmt, sync::Arc, time::Duration};

use redlock_proto::Word;
use tracing::Span;

pub(crate) use self::held::HeldLease;
use crate::{
    ExtendError, FencingToken, Lease, LeaseLost, LossReason, ReleaseError, ResourceKey,
    engine::{Holding, Parked},
    queue::Turn,
};

/// The owner of a lease.
///
/// While it lives, the client renews the lease (unless [`Renewal::Manual`](crate::Renewal) was asked
/// for); while the lease is held, no other caller of this process or another gets one on the same
/// resource.
/// A lease that is lost keeps nobody out of the local queue, even if the guard is still there.
///
/// # Dropping
///
/// Dropping the guard releases the lease: it hands the release over to the client's own thread and
/// never blocks, panics or needs a runtime.
/// It does not tell whether the release was confirmed; [`release`](Self::release) does.
/// A process that ends right after the drop may end before the release was sent;
/// [`Redlock::close`](crate::Redlock::close) waits for it, and the time to live is the backstop.
///
/// # Scopes
///
/// In a [`Scope`](crate::Scope) a lease can have several guards; it is released when the last of them is dropped.
///
/// # Fairness
///
/// Callers of one process wait in order.
/// Between processes, a random retry decides.
#[clippy::has_significant_drop]
#[must_use = "dropping the guard releases the lock"]
pub struct LockGuard {
    held: Arc<HeldLease>,
    /// Whether it is counted no more.
    is_gone: bool,
}

impl LockGuard {
    pub(crate) fn new(holding: Holding, turn: Turn<Parked>) -> Self {
        Self {
            held: Arc::new(HeldLease::new(holding, turn)),
            is_gone: false,
        }
    }

    /// Returns another guard of a lease, unless the last is gone.
    pub(crate) fn another(held: Arc<HeldLease>) -> Option<Self> {
        held.has_another().then_some(Self {
            held,
            is_gone: false,
        })
    }

    /// Returns what all guards of the lease share.
    pub(crate) fn held(&self) -> &Arc<HeldLease> {
        &self.held
    }

    /// Goes on in this span.
    pub(crate) fn watch(&self, span: Span) {
        self.held.watch(span);
    }

    /// Says what came of the run under a lease that was claimed.
    pub(crate) fn finish(&self, outcome: Word, took: Duration) {
        self.held.finish(outcome, took);
    }

    /// Returns a view of the lease, to be cloned and handed on.
    pub fn lease(&self) -> &Lease {
        self.held.lease()
    }

    /// Returns the fencing token of this lease: greater than that of every lease on the resource before it.
    ///
    /// Give it to the resource with each write, and let the resource refuse older ones; see
    /// [`Fence`](crate::Fence).
    pub fn token(&self) -> FencingToken {
        self.lease().token()
    }

    /// Returns what is locked; the first of its [keys](Self::keys) if several are.
    pub fn key(&self) -> &ResourceKey {
        self.lease().key()
    }

    /// Returns all that is locked, in order.
    pub fn keys(&self) -> &[ResourceKey] {
        self.lease().keys()
    }

    /// Runs `work` for as long as the lease is valid, as [`Lease::run`] says.
    ///
    /// # Errors
    ///
    /// The lease was lost, and `work` was dropped unfinished.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops `work`; the lease stays with the guard.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let guard = redlock.acquire("invoice:2026-11").await?;
    /// let total = guard.run(async { 6 * 7 }).await?;
    /// assert_eq!(total, 42);
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, LeaseLost> {
        self.lease().run(work).await
    }

    /// Returns whether the lease can be relied on at this moment, as [`Lease::is_held`] says.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let guard = redlock.acquire("invoice:2026-11").await?;
    /// // Code that blocks its thread cannot be dropped in time: it asks before each step that matters.
    /// for _page in 0..3 {
    ///     if !guard.is_held() {
    ///         return Err("the lease was lost".into());
    ///     }
    /// }
    /// assert!(guard.remaining() <= redlock.ttl());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_held(&self) -> bool {
        self.lease().is_held()
    }

    /// Returns how much longer the lease is valid, as [`Lease::remaining`] says; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        self.lease().remaining()
    }

    /// Waits until the lease can no longer be relied on, as [`Lease::lost`] says.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    pub async fn lost(&self) -> LossReason {
        self.lease().lost().await
    }

    /// Waits until the lease is in danger, as [`Lease::endangered`] says.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    pub async fn endangered(&self) {
        self.lease().endangered().await;
    }

    /// Returns whether the lease is in danger, as [`Lease::is_endangered`] says.
    pub fn is_endangered(&self) -> bool {
        self.lease().is_endangered()
    }

    /// Asks a majority to keep the lease for its whole time to live from now.
    ///
    /// With automatic renewal there is no need to.
    ///
    /// # Errors
    ///
    /// [`Unconfirmed`](crate::ExtendErrorKind::Unconfirmed) changes nothing: the lease keeps the
    /// deadline it had and the next extension may succeed.
    /// [`Lost`](crate::ExtendErrorKind::Lost) is final.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the extension may still be made.
    pub async fn extend(&self) -> Result<(), ExtendError> {
        self.held.extend().await
    }

    /// Releases the lease and waits until a majority has confirmed it.
    ///
    /// If the next caller of this process takes it over, or there are other guards of it in its
    /// [scope](crate::Scope), there is nothing to wait for.
    ///
    /// # Errors
    ///
    /// Nothing needs to be done about an error: it says that the key stays until its time to live
    /// ends, or that the lease had been lost before, or released by the end of its scope.
    ///
    /// # Cancel safety
    ///
    /// The release is on its way when this is first polled or dropped; dropping it only gives up the
    /// confirmation.
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        self.is_gone = true;
        if self.held.was_last() {
            self.held.release().await
        } else {
            Ok(())
        }
    }

    /// Ends the renewal but leaves the key on the nodes until its time to live ends.
    ///
    /// For marks that must outlive their work, such as "this was started".
    /// From now on this process cannot tell how long the mark stays: views of the lease report it as
    /// released.
    /// If there are other guards of it in its [scope](crate::Scope), it is so once they are gone.
    pub fn leave(self) {
        self.held.leave_at_the_end();
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if !self.is_gone && self.held.was_last() {
            self.held.end();
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("lease", self.lease())
            .finish_non_exhaustive()
    }
}
