use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

use super::Election;
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
    pub(super) election: Election,
}

/// The last term that a candidate won, of which observers of its process are told.
pub(super) type OwnTerm = Arc<watch::Sender<Option<Lease>>>;

/// The guard of a term; empty once the term was resigned.
type SharedGuard = Arc<Mutex<Option<LockGuard>>>;

impl Term {
    pub(super) fn new(guard: LockGuard, election: Election) -> Self {
        Self {
            lease: guard.lease().clone(),
            guard: Arc::new(Mutex::new(Some(guard))),
            election,
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
            Some(guard) => {
                let released = guard.release().await;
                look_again(&self.election.own);
                released
            }
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
pub(super) struct Resignation(SharedGuard, OwnTerm);

impl Resignation {
    pub(super) fn of(term: &Term) -> Self {
        Self(Arc::clone(&term.guard), Arc::clone(&term.election.own))
    }

    /// Resigns the term, if it was not resigned before.
    pub(super) async fn resign(self) {
        if let Some(guard) = take(&self.0) {
            // If no majority confirms it, the role is free after the ttl.
            drop(guard.release().await);
            look_again(&self.1);
        }
    }
}

impl Drop for Resignation {
    fn drop(&mut self) {
        drop(take(&self.0));
    }
}

/// Has observers of this process look again, because nodes have let the role go.
fn look_again(own: &OwnTerm) {
    own.send_modify(|_| {});
}

/// Takes the guard out, so that it is dropped or released outside of the lock.
fn take(guard: &SharedGuard) -> Option<LockGuard> {
    guard.lock().unwrap_or_else(PoisonError::into_inner).take()
}
