//! Claims of scheduled ticks: a run is started once, by one replica, and by the nodes' clocks.

mod options;
mod outcome;

use std::{fmt, ops::Deref, time::Duration};

use redlock_proto::{RunRecord, Tick};

pub use self::{
    options::ClaimOptions,
    outcome::{ClaimOutcome, JobReading},
};
use crate::{Lease, LockGuard, Note, ReleaseError, Word};

/// The right to start the run of a tick, and the lock that the run holds.
///
/// A majority of the nodes remembers the tick.
/// So no other caller can claim this tick or an earlier one of the job, however this run ends.
/// While the claim lives, the client holds and renews its lock as it does for a [`LockGuard`], and no caller can claim
/// another run of the job.
/// It derefs to the lock's [`Lease`]: its [token](Lease::token) is greater than that of every run of the job before it,
/// whatever the clocks do, and [`run`](Lease::run) runs work for as long as the lease is valid.
///
/// # Dropping
///
/// Dropping it releases the lock, as dropping a [`LockGuard`] does, and the nodes record the run as `dropped`.
/// The tick stays claimed.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_core::{ClaimOptions, Tick, Word};
/// use std::time::{Duration, SystemTime};
///
/// let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
/// let tick = Tick::from_millis(now.as_secs() * 1_000).ok_or("the clock is off by centuries")?;
/// let outcome = redlock.claim("close-day", tick, ClaimOptions::new("pod-7")).await?;
/// let claim = outcome.won().ok_or("another replica has it")?;
/// assert_eq!(claim.tick(), tick);
/// assert!(claim.last().is_none(), "it is the first run");
/// claim.run(async { /* give claim.token() to the resource with each write */ }).await?;
/// assert!(claim.lease().is_held());
/// # assert_eq!(claim.token(), claim.lease().token());
/// let ok = Word::new("ok").ok_or("it has a space")?;
/// claim.finish(ok, Duration::from_millis(20)).await?;
/// # Ok(())
/// # }
/// ```
#[clippy::has_significant_drop]
#[must_use = "dropping the claim gives the lock back, and its tick is never started"]
pub struct Claim {
    guard: LockGuard,
    tick: Tick,
    last: Option<RunRecord>,
    note: Option<Note>,
}

impl Claim {
    pub(crate) fn new(guard: LockGuard, tick: Tick, last: Option<RunRecord>) -> Self {
        Self {
            guard,
            tick,
            last,
            note: None,
        }
    }

    /// Sets the note that [`finish`](Self::finish) records with the outcome, for people.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_core::{ClaimOptions, Note, Redlock, Tick, Word};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let now = redlock.node_time().await.ok_or("too few nodes")?;
    /// # let now = now.duration_since(std::time::UNIX_EPOCH)?;
    /// # let tick = Tick::from_millis(now.as_secs() * 1_000).ok_or("a tick")?;
    /// # let claim = redlock.claim("close-day", tick, ClaimOptions::new("pod-7")).await?;
    /// # let claim = claim.won().ok_or("another replica has it")?;
    /// let failed = Word::new("failed").ok_or("it has a space")?;
    /// let claim = claim.with_note(Note::new("the ledger is closed"));
    /// claim.finish(failed, std::time::Duration::from_millis(20)).await?;
    ///
    /// let job = redlock.job_status("close-day").await?;
    /// let run = &job.state().ok_or("too few nodes")?.runs[0];
    /// assert_eq!(run.note.as_ref().map(Note::as_str), Some("the ledger is closed"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_note(mut self, note: Option<Note>) -> Self {
        self.note = note;
        self
    }

    /// Returns the tick that the caller may start.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// Returns a view of the lock's lease, which the holder can clone and pass on.
    pub fn lease(&self) -> &Lease {
        self.guard.lease()
    }

    /// Returns the newest run before this one, as far as the nodes that voted remember.
    ///
    /// If its [`fingerprint`](RunRecord::fingerprint) differs from this run's, the replica that claimed it has another
    /// configuration.
    pub fn last(&self) -> Option<&RunRecord> {
        self.last.as_ref()
    }

    /// Records how the run ended and how long it took, and releases the lock; the future waits until a majority has
    /// confirmed the release.
    ///
    /// [`job_status`](crate::Redlock::job_status) returns the record.
    /// The client repeats both for as long as a node may keep the lock, and a node that releases it has the outcome.
    /// A node that the client cannot reach for that time will not have the outcome, and no guarantee rests on it.
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`].
    ///
    /// # Cancel safety
    ///
    /// The call records the outcome.
    /// The client begins the release when the future is first polled or dropped; dropping it only gives up the
    /// confirmation.
    /// Until then, the claim keeps its lease, and the client renews it: a caller must not store the future away unpolled.
    pub fn finish(
        self,
        outcome: Word,
        took: Duration,
    ) -> impl Future<Output = Result<(), ReleaseError>> + Send {
        // Not in the future, which may be dropped before it is polled.
        self.guard.finish(outcome, took, self.note);
        self.guard.release()
    }
}

impl Deref for Claim {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        self.guard.lease()
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("tick", &self.tick)
            .field("lease", self.guard.lease())
            .finish_non_exhaustive()
    }
}
