mod held;
mod view;

use std::{fmt, sync::Arc, time::Duration};

use redlock_proto::Word;
use tracing::Span;

pub(crate) use self::held::HeldLease;
use crate::{
    ExtendError, ReleaseError,
    engine::{Holding, Parked},
    queue::Turn,
};

/// The owner of a lease.
///
/// While it lives, the client renews the lease (unless [`Renewal::Manual`](crate::Renewal) was asked
/// for); while the lease is held, no other caller of this process or another gets one on the same
/// resource, unless both [share](crate::Redlock::acquire_shared) it.
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
/// # A holder that panics
///
/// A panic that unwinds drops the guard, and so releases the lease: the next caller gets it at once.
/// Nothing is poisoned, as in tokio's mutex and unlike the standard library's.
/// The resource is as the panic left it, and the next holder must bear with that.
/// Where panics abort the process, nothing is released, and the key ends by its time to live.
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
/// In a [`Scope`](crate::Scope) a lease can have several guards, and so can one that callers of a process
/// [share](crate::Redlock::acquire_shared); it is released when the last of them is dropped.
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
    /// Whether it is counted no more.
    is_gone: bool,
}

impl LockGuard {
    pub(crate) fn new(holding: Holding, turn: Turn<Parked>) -> Self {
        Self::of(HeldLease::new(holding, Some(turn)))
    }

    /// Returns the guard of a lease that is shared: its holder keeps no turn, because others may have it too.
    pub(crate) fn shared(holding: Holding) -> Self {
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

    /// Lets others share what this lease has had alone, without letting it go in between, and waits until a majority has
    /// confirmed it.
    ///
    /// To write, and then to read what was written while others read it too.
    /// The lease keeps its token, and others share the resource from now on, also if this fails.
    /// It is so for all guards of the lease, if there are several in a [scope](crate::Scope); and of a lease that is
    /// shared already, there is nothing to do.
    /// There is no way back: two holders that both wanted the resource alone would wait for each other.
    ///
    /// # Errors
    ///
    /// [`Unconfirmed`](crate::ExtendErrorKind::Unconfirmed): nodes that were not reached may keep others out until the next
    /// renewal tells them.
    /// [`Lost`](crate::ExtendErrorKind::Lost) is final.
    ///
    /// # Cancel safety
    ///
    /// Others may share the resource once this was polled; dropping it only gives up the confirmation.
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
    /// If the next caller of this process takes it over, or there are other guards of it, there is nothing to wait for.
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
    /// If there are other guards of it, it is so once they are gone.
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
