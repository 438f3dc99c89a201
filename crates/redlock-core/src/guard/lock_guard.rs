use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use redlock_proto::{Note, Word};
use tracing::Span;

use super::acquire_span;
use crate::{
    AcquireError, ExtendError, Lease, LossReason, Mode, ReleaseError,
    engine::{HeldLease, NotWon},
};

/// The owner of a lease.
///
/// While the guard lives, the client renews the lease, unless the holder asked for
/// [`Renewal::Manual`](crate::Renewal).
/// While the lease is held, no other caller of this process or another gets a lease on the same resource, unless both
/// [share](crate::Redlock::acquire_shared) it.
/// A lost lease does not block the local queue, even if the guard still exists.
/// It derefs to its [`Lease`], which has the key, the fencing token and the time that is left.
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
/// Callers of different processes wait in line at the nodes, where clients may publish and subscribe; otherwise a random
/// retry decides.
/// [`Fairness`](crate::Fairness) says which of the two orders counts.
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
    /// Returns the first guard of a lease.
    pub(crate) fn new(held: Arc<HeldLease>) -> Self {
        Self {
            held,
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
    pub(crate) fn watch(&self, span: impl FnOnce() -> Span) {
        self.held.watch(span);
    }

    /// Says what came of the run under a lease that was claimed.
    pub(crate) fn finish(&self, outcome: Word, took: Duration, note: Option<Note>) {
        self.held.finish(outcome, took, note);
    }

    /// Returns a view of the lease, which the holder can clone and pass on.
    pub fn lease(&self) -> &Lease {
        self.held.lease()
    }

    /// Asks a majority to keep the lease for its whole time to live from now.
    ///
    /// With automatic renewal the holder need not call it.
    /// Where nodes say that they do not have the key, the client asks all nodes up to eight more times, because an attempt of
    /// another client may have had it there for a moment.
    /// All of it takes at most twice the client's `node_timeout`.
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

    /// Makes a shared lease an exclusive one, if no other reader shares the resource at the moment: one attempt.
    ///
    /// A reader calls it that has found something to write: no writer holds the resource between the two leases.
    /// It does not wait for other readers: two readers that waited to become writers would wait for each other.
    /// A reader that cannot upgrade releases its lease, acquires an exclusive one, and reads again.
    /// A writer that waits already does not prevent the upgrade; it waits for the exclusive lease too.
    ///
    /// The exclusive lease is a lease of its own, on the same keys and with the same options.
    /// Its [token](Lease::token) is greater than those of all leases before it, also of the shared one.
    /// It has a new time to live, and ends when the shared lease would by its
    /// [`max_hold`](crate::AcquireOptions::max_hold).
    /// The views of the shared lease report it as released: take another [view](Self::lease).
    /// The client releases the shared lease as soon as it has the exclusive one.
    /// It hands the exclusive lease over to no caller.
    ///
    /// A guard whose lease is exclusive already stays as it is.
    ///
    /// # Errors
    ///
    /// After an error the guard still has the shared lease, as long as that is valid.
    ///
    /// - [`Contended`](crate::AcquireErrorKind::Contended): another reader shares the resource, in this process or
    ///   another; or the lease has other guards; or nodes have not heard yet that an earlier upgrade was given up, or that
    ///   the lease was downgraded.
    /// - [`NoQuorum`](crate::AcquireErrorKind::NoQuorum), [`Quarantined`](crate::AcquireErrorKind::Quarantined): too few
    ///   nodes granted it.
    /// - [`Expired`](crate::AcquireErrorKind::Expired): the shared lease was over before the exclusive one was won, so a
    ///   writer may have held the resource in between.
    /// - [`Closed`](crate::AcquireErrorKind::Closed): the client was closed.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the guard holds the shared lease.
    /// The client releases in the background what a node has granted or will grant.
    /// Until the nodes have heard of that, they may refuse other readers, and another upgrade.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::{AcquireErrorKind, Mode};
    ///
    /// let mut guard = redlock.acquire_shared("catalogue").await?;
    /// // Read it, and find it out of date.
    /// match guard.try_upgrade().await {
    ///     Ok(()) => assert_eq!(guard.mode(), Mode::Exclusive), // Write it, alone.
    ///     Err(error) if error.kind() == AcquireErrorKind::Contended => { /* others read it too */ }
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_upgrade(&mut self) -> Result<(), AcquireError> {
        if self.mode() == Mode::Exclusive {
            return self.still_held();
        }
        // No reader joins the shared lease as long as it may be upgraded.
        let only = Only::guard_of(&self.held).ok_or_else(AcquireError::contended_locally)?;
        let upgrade = self.held.upgrade().ok_or_else(AcquireError::expired)?;
        let upgraded = upgrade.await.map_err(NotWon::into_error)?;
        let upgraded = Self::new(Arc::new(upgraded));
        // The shared lease must still be valid now: otherwise another client may have had the resource in between.
        upgraded.still_held()?;
        self.still_held()?;
        let lease = upgraded.lease();
        upgraded.watch(|| acquire_span::hold(lease.client(), lease.class(), lease.token()));
        self.held.give_place_to(&upgraded.held);
        *self = upgraded;
        drop(only);
        Ok(())
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

    fn still_held(&self) -> Result<(), AcquireError> {
        if self.is_held() {
            Ok(())
        } else {
            Err(AcquireError::expired())
        }
    }
}

impl Deref for LockGuard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        self.held.lease()
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

/// The only guard of its lease, until this is dropped.
struct Only(Arc<HeldLease>);

impl Only {
    /// `None` if the lease has other guards.
    fn guard_of(held: &Arc<HeldLease>) -> Option<Self> {
        held.keep_to_one().then(|| Self(Arc::clone(held)))
    }
}

impl Drop for Only {
    fn drop(&mut self) {
        self.0.let_others_come();
    }
}
