//! Claims of scheduled ticks: a run is started once, by one replica, and by the nodes' clocks.

mod options;
mod outcome;
mod reading;

use std::{fmt, time::Duration};

use redlock_proto::{FencingToken, RunRecord, Tick};

pub use self::{options::ClaimOptions, outcome::ClaimOutcome, reading::JobReading};
use crate::{Lease, LeaseLost, LockGuard, ReleaseError, Word};

/// The right to start the run of a tick, and the lock under which it goes on.
///
/// A majority of the nodes remembers the tick: nobody else can claim it, or an earlier one of the job, whatever
/// becomes of this run.
/// While the claim lives, its lock is held and renewed as a [`LockGuard`]'s is, and no other run of the job can be
/// claimed.
///
/// # Dropping
///
/// Dropping it releases the lock, as dropping a [`LockGuard`] does, and the run is recorded as `dropped`.
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
}

impl Claim {
    pub(crate) fn new(guard: LockGuard, tick: Tick, last: Option<RunRecord>) -> Self {
        Self { guard, tick, last }
    }

    /// Returns the tick that may be started.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// Returns the fencing token: greater than that of every run of the job before it, whatever the clocks do.
    pub fn token(&self) -> FencingToken {
        self.guard.token()
    }

    /// Returns a view of the lock's lease, to be cloned and handed on.
    pub fn lease(&self) -> &Lease {
        self.guard.lease()
    }

    /// Returns the newest run before this one, as far as the nodes that voted remember.
    ///
    /// If its [`fingerprint`](RunRecord::fingerprint) is another, the replica that claimed it has another
    /// configuration.
    pub fn last(&self) -> Option<&RunRecord> {
        self.last.as_ref()
    }

    /// Runs `work` for as long as the lease is valid; see [`LockGuard::run`].
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
    /// Dropping it drops `work`; the lease stays with the claim.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, LeaseLost> {
        self.guard.run(work).await
    }

    /// Records how the run ended and how long it took, releases the lock, and waits until a majority has confirmed
    /// the release.
    ///
    /// The record is for those who [ask](crate::Redlock::job_status); nothing rests on it, and nodes that cannot be
    /// reached now will not have it.
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`].
    ///
    /// # Cancel safety
    ///
    /// Both are on their way when this is first polled or dropped; dropping it only gives up the confirmation.
    pub async fn finish(self, outcome: Word, took: Duration) -> Result<(), ReleaseError> {
        self.guard.finish(outcome, took);
        self.guard.release().await
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
