use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use redlock_proto::Word;
use tracing::Span;

use crate::{
    ExtendError, FencingToken, Lease, LeaseLost, LossReason, ReleaseError, ResourceKey,
    engine::{Holding, Parked},
    lease::Kept,
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
/// # Fairness
///
/// Callers of one process wait in order.
/// Between processes, a random retry decides.
#[clippy::has_significant_drop]
#[must_use = "dropping the guard releases the lock"]
pub struct LockGuard {
    // invariant: it is there until the guard is dropped or consumed
    holding: Option<Holding>,
    turn: Arc<HolderTurn>,
    /// Its span, which ends with it.
    span: Span,
}

/// The holder's turn in the local queue, until the guard takes it or the lease is lost.
#[derive(Debug)]
struct HolderTurn(Mutex<Option<Turn<Parked>>>);

impl LockGuard {
    pub(crate) fn new(holding: Holding, turn: Turn<Parked>) -> Self {
        let turn = Arc::new(HolderTurn(Mutex::new(Some(turn))));
        // A loss passes the turn on, however busy or idle the holder is.
        holding.keep(Arc::clone(&turn) as Arc<dyn Kept>);
        Self {
            holding: Some(holding),
            turn,
            span: Span::none(),
        }
    }

    /// Goes on in this span.
    pub(crate) fn watch(&mut self, span: Span) {
        self.span = span;
    }

    fn holding(&self) -> &Holding {
        self.holding.as_ref().expect("the guard was not consumed")
    }

    /// Says what came of the run under a lease that was claimed.
    pub(crate) fn finish(&self, outcome: Word, took: Duration) {
        self.holding().finish(outcome, took);
    }

    /// Returns a view of the lease, to be cloned and handed on.
    pub fn lease(&self) -> &Lease {
        self.holding().lease()
    }

    /// Returns the fencing token of this lease: greater than that of every lease on the resource before it.
    ///
    /// Give it to the resource with each write, and let the resource refuse older ones; see
    /// [`Fence`](crate::Fence).
    pub fn token(&self) -> FencingToken {
        self.holding().token()
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
        self.holding().extend().await
    }

    /// Releases the lease and waits until a majority has confirmed it.
    ///
    /// If the next caller of this process takes it over, there is nothing to wait for.
    ///
    /// # Errors
    ///
    /// Nothing needs to be done about an error: it says that the key stays until its time to live
    /// ends, or that the lease had been lost before.
    ///
    /// # Cancel safety
    ///
    /// The release is on its way when this is first polled or dropped; dropping it only gives up the
    /// confirmation.
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        let Some(holding) = self.give_up() else {
            return Ok(());
        };
        let Some(turn) = self.turn.take() else {
            return holding.release().await;
        };
        let Some(holding) = pass_on(&turn, holding) else {
            return Ok(());
        };
        let confirmation = holding.release();
        // The release is on its way before the next local caller has its turn, and requests travel in order on
        // each connection, so that caller is not refused by our leftovers.
        drop(turn);
        confirmation.await
    }

    /// Takes what it holds, in whatever way it ends; its span says if that was lost.
    fn give_up(&mut self) -> Option<Holding> {
        let holding = self.holding.take()?;
        if !self.span.is_disabled()
            && let Some(reason) = holding.loss()
        {
            self.span.record("lost", tracing::field::display(reason));
        }
        Some(holding)
    }

    /// Ends the renewal but leaves the key on the nodes until its time to live ends.
    ///
    /// For marks that must outlive their work, such as "this was started".
    /// From now on this process cannot tell how long the mark stays: views of the lease report it as
    /// released.
    pub fn leave(mut self) {
        if let Some(holding) = self.give_up() {
            let _turn = self.turn.take();
            holding.leave();
        }
    }
}

impl HolderTurn {
    /// `None` if the lease was lost.
    fn take(&self) -> Option<Turn<Parked>> {
        // A turn is there or not at every moment.
        let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turn.take()
    }
}

/// Leaves the lease to the next caller of this process; else returns it, to be released.
fn pass_on(turn: &Turn<Parked>, holding: Holding) -> Option<Holding> {
    turn.pass_on(holding, Holding::to_hand_over, Holding::park)
}

impl Kept for HolderTurn {
    fn let_go(&self) {
        drop(self.take());
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        let Some(holding) = self.give_up() else {
            return;
        };
        match self.turn.take() {
            // If nobody in this process waits for it, the lease is released before the turn passes on.
            Some(turn) => drop(pass_on(&turn, holding)),
            None => drop(holding),
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
