mod held;
mod upgrade;
mod view;

use std::{fmt, sync::Arc, time::Duration};

use redlock_proto::Word;

pub(crate) use self::held::{HeldLease, Scoped};
use crate::{
    ExtendError, LossReason, ReleaseError,
    engine::{Holding, Parked},
    queue::Turn,
    quiet::QuietSpan,
};

/// The owner of a lease.
///
/// While the guard lives, the client renews the lease, unless the holder asked for
/// [`Renewal::Manual`](crate::Renewal).
/// While the lease is held, no other caller of this process or another gets a lease on the same resource, unless both
/// [share](crate::Redlock::acquire_shared) it.
/// A lost lease does not block the local queue, even if the guard still exists.
///
/// # Dropping
///
/// Dropping the guard releases the lease.
/// The drop hands the release over to the client's own thread, and never blocks, panics or needs a runtime.
/// It does not report whether the nodes confirmed the release; [`release`](Self::release) does.
/// A process that ends right after the drop may end before the client has sent the release.
/// [`Redlock::close`](crate::Redlock::close) waits for the release; without it, the key ends by its time to live.
///
/// # A holder that panics
///
/// A panic that unwinds drops the guard, and so releases the lease: the next caller gets it at once.
/// The lock is not poisoned, as in tokio's mutex and unlike the standard library's.
/// The resource stays as the panic left it, and the next holder must handle that.
/// If panics abort the process, the client releases nothing, and the key ends by its time to live.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let guard = redlock.acquire("report").await?;
/// let work = tokio::spawn(async move { guard.run(async { panic!("no paper") }).await });
/// assert!(work.await.unwrap_err().is_panic());
/// let next = redlock.acquire("report").await?; // does not wait for the time to live
/// # drop(next);
/// # Ok(())
/// # }
/// ```
///
/// # Scopes
///
/// In a [`Scope`](crate::Scope) a lease can have several guards.
/// So can a lease that readers of a process [share](crate::Redlock::acquire_shared).
/// The client releases the lease when the last of its guards is dropped.
///
/// # Fairness
///
/// Callers of one process wait in order.
/// Between processes, a random retry decides.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let guard = redlock.acquire("report:2026-11").await?;
/// assert_eq!(guard.key().as_str(), "report:2026-11");
/// assert_eq!(guard.keys().len(), 1);
/// let pages = guard.run(async { /* write the report */ 3 }).await?; // dropped if the lease is lost
/// if guard.release().await.is_err() {
///     // The report is written all the same; the key ends by its time to live.
/// }
/// # assert_eq!(pages, 3);
/// # Ok(())
/// # }
/// ```
#[clippy::has_significant_drop]
#[must_use = "dropping the guard releases the lock"]
pub struct LockGuard {
    held: Arc<HeldLease>,
    /// Set when the guard no longer counts as a guard of the lease.
    is_gone: bool,
}

impl LockGuard {
    pub(crate) fn new(holding: Holding, turn: Turn<Parked>) -> Self {
        Self::of(HeldLease::new(holding, Some(turn)))
    }

    /// Returns the guard of a lease whose holder keeps no turn: others may have it too, or did when it was won.
    pub(crate) fn without_turn(holding: Holding) -> Self {
        Self::of(HeldLease::new(holding, None))
    }

    fn of(held: HeldLease) -> Self {
        Self {
            held: Arc::new(held),
            is_gone: false,
        }
    }

    /// Returns another guard of a lease, unless the last is gone.
    pub(crate) fn another(held: Arc<HeldLease>) -> Option<Self> {
        // A guard that must not be there would release the lease when it is dropped.
        held.has_another().then(|| Self {
            held,
            is_gone: false,
        })
    }

    /// Returns what all guards of the lease share.
    pub(crate) fn held(&self) -> &Arc<HeldLease> {
        &self.held
    }

    /// Goes on in this span, unless its lease has one already.
    pub(crate) fn watch(&self, span: impl FnOnce() -> QuietSpan) {
        self.held.watch(span);
    }

    /// Says what came of the run under a lease that was claimed.
    pub(crate) fn finish(&self, outcome: Word, took: Duration) {
        self.held.finish(outcome, took);
    }

    /// Asks a majority to keep the lease for its whole time to live from now.
    ///
    /// With automatic renewal the holder need not call it.
    ///
    /// # Errors
    ///
    /// [`Unconfirmed`](crate::ExtendErrorKind::Unconfirmed) changes nothing: the lease keeps its
    /// deadline, and the next extension may succeed.
    /// [`Lost`](crate::ExtendErrorKind::Lost) is final.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the nodes may still extend the lease.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::{AcquireOptions, ExtendErrorKind, Renewal};
    ///
    /// let options = AcquireOptions::new().renewal(Renewal::Manual);
    /// let guard = redlock.acquire_with("report", options).await?;
    /// match guard.extend().await {
    ///     Ok(()) => {}
    ///     Err(error) if error.kind() == ExtendErrorKind::Unconfirmed => { /* valid up to its deadline */ }
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn extend(&self) -> Result<(), ExtendError> {
        self.held.extend().await
    }

    /// Makes an exclusive lease a shared one without releasing it in between, and waits until a majority has confirmed
    /// that.
    ///
    /// A writer calls it to read what it has written while other readers read it too.
    /// The lease keeps its token.
    /// Readers may share the resource from now on, also if this fails.
    /// If the lease has several guards in a [scope](crate::Scope), all of them share it.
    /// A lease that was acquired as a shared one stays as it is.
    /// A second call tells the nodes again.
    /// [`try_upgrade`](Self::try_upgrade) is the way back, for a reader that shares the resource with no other.
    ///
    /// # Errors
    ///
    /// [`Unconfirmed`](crate::ExtendErrorKind::Unconfirmed): a node that the client did not reach may refuse readers
    /// until the next renewal, or the next call of this method, tells it.
    /// [`Lost`](crate::ExtendErrorKind::Lost) is final.
    ///
    /// # Cancel safety
    ///
    /// Readers may share the resource once the future was polled; dropping it only gives up the confirmation.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let guard = redlock.acquire("catalogue").await?;
    /// // Write it, alone.
    /// guard.downgrade().await?;
    /// // Read it, with others.
    /// let other = redlock.acquire_shared("catalogue").await?;
    /// assert!(guard.is_held() && other.is_held());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn downgrade(&self) -> Result<(), ExtendError> {
        self.held.downgrade().await
    }

    /// Releases the lease and waits until a majority has confirmed it.
    ///
    /// It returns at once if the next caller of this process takes the lease over, or if the lease has other guards.
    ///
    /// # Errors
    ///
    /// The holder need not act on an error.
    /// It says that the key stays until its time to live ends, that the lease had been lost before, or that the end of
    /// its scope had released it.
    ///
    /// # Cancel safety
    ///
    /// The client begins the release when the future is first polled or dropped; dropping it only gives up the
    /// confirmation.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let guard = redlock.acquire("report").await?;
    /// // Writes the report.
    /// if let Err(error) = guard.release().await {
    ///     eprintln!("the report is written, but: {error}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        self.is_gone = true;
        if self.held.was_last() {
            return self.held.release().await;
        }
        match self.lease().loss() {
            None => Ok(()),
            Some(LossReason::ScopeEnded) => Err(ReleaseError::scope_ended()),
            Some(_) => Err(ReleaseError::lost()),
        }
    }

    /// Ends the renewal but leaves the key on the nodes until its time to live ends.
    ///
    /// It is meant for marks that must outlive their work, such as "this was started".
    /// From now on this process cannot know how long the mark stays: views of the lease report it as
    /// released.
    /// If the lease has other guards, also those of other readers that share it, this takes effect when the last of them is
    /// dropped; no other reader joins the lease any more.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::{AcquireErrorKind, AcquireOptions};
    /// use std::time::Duration;
    ///
    /// // One reminder in 20 s at most, by whichever replica.
    /// let options = AcquireOptions::new().ttl(Duration::from_secs(20));
    /// redlock.acquire_with("reminder:42", options).await?.leave();
    /// let refused = redlock.try_acquire("reminder:42").await.unwrap_err();
    /// assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    /// # Ok(())
    /// # }
    /// ```
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
