//! The claim of a tick: what lets one replica start it, and no other.
//!
//! The rest of the crate knows [`Claims::claim`] and [`Claim::start`] only.
//!
//! # How
//!
//! A lock on the job's name alone does not do: a job of five milliseconds has released it before a
//! replica whose clock is a second behind comes to the tick, takes the lock and runs the job again.
//! So there are two leases.
//!
//! 1. The *job lease*, on the job's name, renewed for as long as the run lasts.
//!    It keeps runs of a job from overlapping, and it is what the run loses when it is dropped.
//! 2. Under it, the *tick mark*, on the tick's own identity.
//!    It is never released once the run is started but left on the nodes for the whole retention, the
//!    longest time to live that the client allows.
//!
//! The mark is taken under the job lease, so that two replicas do not split the nodes' votes for it,
//! and a replica that finds the job busy does not burn the tick.
//!
//! # Why no tick starts twice
//!
//! Let a tick be due at `T`, let `R` be the retention and `D` the `start_within` of the job, and let
//! `s` say by how much a replica's clock is ahead.
//! Of two replicas that started the tick, look at a node which granted both marks; there is one,
//! because two majorities meet.
//! The first mark was sent when its replica's clock showed `T` or later, at the true time `T - s1` at
//! the earliest, and the node kept it for `R` from when it arrived.
//! The second replica looked at its clock *after* its mark was granted, and saw `T + D` at most, so
//! the node granted it at the true time `T + D - s2` at the latest.
//! The node grants the second mark only after the first has expired:
//! `T + D - s2 >= T - s1 + R`, or `s1 - s2 >= R - D`.
//! So while the clocks of any two replicas differ by less than the retention less `start_within`,
//! nodes keep their data for the retention and their clocks run at the right rate, it cannot be.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use redlock_core::{
    AcquireError, AcquireErrorKind, AcquireOptions, LockGuard, Redlock, Renewal, Wait,
};

use crate::{
    Outcome,
    clock::{Clock, lag},
    identity::JobId,
};

/// Claims ticks for the jobs of one replica.
pub(crate) struct Claims {
    redlock: Redlock,
    clock: Arc<dyn Clock>,
}

/// What a job allows its claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// A tick older than this is not started.
    pub(crate) start_within: Duration,
    /// The time to live of the job lease.
    pub(crate) ttl: Duration,
}

/// The right to start a tick.
///
/// Dropping it gives the tick back, for a replica that comes to it later.
#[must_use = "dropping the claim gives the tick back"]
pub(crate) struct Claim {
    // Dropped in this order: whoever gets the job lease next must not find a mark that is being
    // given back.
    mark: LockGuard,
    lease: LockGuard,
}

/// Why a tick is not started here.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
}

impl Claims {
    pub(crate) fn new(redlock: Redlock, clock: Arc<dyn Clock>) -> Self {
        Self { redlock, clock }
    }

    /// For how long a tick stays marked as started.
    pub(crate) fn retention(&self) -> Duration {
        self.redlock.max_ttl()
    }

    /// Claims `tick` of the job `id`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives back what was or will be granted.
    pub(crate) async fn claim(
        &self,
        id: &JobId,
        tick: DateTime<Utc>,
        terms: Terms,
    ) -> Result<Claim, Refusal> {
        let left = self.in_time(tick, terms)?;
        let lease = AcquireOptions::new()
            .ttl(terms.ttl)
            .wait(Wait::UpTo(left.min(LEASE_WAIT)));
        let lease = self
            .redlock
            .acquire_with(id.lease_key(), lease)
            .await
            .map_err(|error| Refusal::by(&error, Outcome::Busy))?;
        self.in_time(tick, terms)?;
        let mark = AcquireOptions::new()
            .ttl(self.retention())
            .wait(Wait::Never)
            .renewal(Renewal::Manual);
        let mark = self
            .redlock
            .acquire_with(id.tick_key(tick), mark)
            .await
            .map_err(|error| Refusal::by(&error, Outcome::NotWinner))?;
        // Once more: the argument above rests on the clock as it was after the mark was granted.
        self.in_time(tick, terms)?;
        Ok(Claim { mark, lease })
    }

    /// How much longer `tick` may be started, by this replica's clock.
    fn in_time(&self, tick: DateTime<Utc>, terms: Terms) -> Result<Duration, Refusal> {
        let (late, limit) = (lag(tick, self.clock.now()), terms.start_within);
        let too_late = || Refusal::too_late(format!("{late:?} late; start_within is {limit:?}"));
        limit.checked_sub(late).ok_or_else(too_late)
    }
}

impl Claim {
    /// Makes the tick one that was started, and gives out the run's lease.
    pub(crate) fn start(self) -> LockGuard {
        self.mark.leave();
        self.lease
    }
}

impl Refusal {
    pub(crate) fn draining() -> Self {
        Self {
            outcome: Outcome::Draining,
            detail: None,
        }
    }

    pub(crate) fn too_late(detail: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::TooLate,
            detail: Some(detail.into()),
        }
    }

    /// What an acquire's error means for the tick, where another's lease means `contended`.
    fn by(error: &AcquireError, contended: Outcome) -> Self {
        let outcome = match error.kind() {
            AcquireErrorKind::Contended => {
                return Self {
                    outcome: contended,
                    detail: None,
                };
            }
            AcquireErrorKind::NoQuorum
            | AcquireErrorKind::Quarantined
            | AcquireErrorKind::Expired => Outcome::NoQuorum,
            _ => Outcome::Refused,
        };
        Self {
            outcome,
            detail: Some(error.to_string()),
        }
    }
}

/// How long a claim waits for the job lease.
///
/// Long enough to settle among replicas that ask at once, and short enough that a tick does not queue
/// up behind a run that overruns.
const LEASE_WAIT: Duration = Duration::from_secs(1);
