use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{Lease, LockGuard, ReleaseError};

/// A term of a leader: an exclusive lease, which the client renews.
///
/// It derefs to its [`Lease`]: [`token`](Lease::token) fences what the leader writes, [`lost`](Lease::lost) resolves
/// when the term is over, and [`remaining`](Lease::remaining) is the time until the deadline.
///
/// # Dropping
///
/// Dropping a term of [`lead_with`](crate::Election::lead_with) resigns it, as dropping a [`LockGuard`] releases it.
/// [`lead`](crate::Election::lead) keeps a handle of its own: dropping its term has no effect while the work runs.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_core::Wait;
///
/// let election = redlock.election("importer").build()?;
/// let first = election.lead_with(Wait::Never).await?;
/// let number = first.token();
/// first.resign().await?;
/// let second = election.lead_with(Wait::Never).await?;
/// assert!(second.token() > number);
/// # Ok(())
/// # }
/// ```
#[clippy::has_significant_drop]
#[must_use = "dropping the term resigns it"]
pub struct Term {
    lease: Lease,
    guard: SharedGuard,
}

/// The guard of a term; empty once the term was resigned.
type SharedGuard = Arc<Mutex<Option<LockGuard>>>;

impl Term {
    pub(super) fn new(guard: LockGuard) -> Self {
        Self {
            lease: guard.lease().clone(),
            guard: Arc::new(Mutex::new(Some(guard))),
        }
    }

    /// Returns a view of the term's lease, which the leader can clone and pass on.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Ends the term, and waits until a majority has confirmed that the role is free.
    ///
    /// In [`lead`](crate::Election::lead) the end of the term also drops the work, and so this future: code behind it
    /// does not run.
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`].
    ///
    /// # Cancel safety
    ///
    /// As [`LockGuard::release`].
    pub async fn resign(self) -> Result<(), ReleaseError> {
        match take(&self.guard) {
            Some(guard) => guard.release().await,
            None => Err(ReleaseError::lost()),
        }
    }
}

impl Deref for Term {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Term").field(&self.lease).finish()
    }
}

/// The end of a term, wherever its work has put it; dropping this resigns the term in the background.
pub(super) struct Ending(SharedGuard);

impl Ending {
    pub(super) fn of(term: &Term) -> Self {
        Self(Arc::clone(&term.guard))
    }

    /// Resigns the term, if it was not resigned before.
    pub(super) async fn resign(self) {
        if let Some(guard) = take(&self.0) {
            // If no majority confirms it, the role is free after the ttl.
            drop(guard.release().await);
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        drop(take(&self.0));
    }
}

/// Takes the guard out, so that it is dropped or released outside of the lock.
fn take(guard: &SharedGuard) -> Option<LockGuard> {
    guard.lock().unwrap_or_else(PoisonError::into_inner).take()
}
