//! The claim of a tick: what lets one replica start it, and no other.
//!
//! The rest of the crate knows [`Claims::claim`] and the [`Claim`] that it returns only.
//!
//! A lock on the job's name alone does not do: a job of five milliseconds has released it before a
//! replica whose clock is a second behind comes to the tick, takes the lock and runs the job again.
//! So the nodes remember the newest tick that was claimed, and judge by their own clocks whether it is
//! time for another; [`Redlock::claim`] says what that promises.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redlock_core::{
    AcquireError, AcquireErrorKind, Claim, ClaimOptions, ClaimOutcome, Redlock, RunRecord, Tick,
    Wait, Word,
};

use crate::{Outcome, identity::JobId};

/// Claims ticks for the jobs of one replica.
pub(crate) struct Claims {
    redlock: Redlock,
    /// What this replica is called on the nodes.
    replica: Word,
}

/// What a job allows its claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// A tick older than this, by the nodes' clocks, is not started.
    pub(crate) start_within: Duration,
    /// The time to live of the job's lease.
    pub(crate) ttl: Duration,
    /// Stands for the job's configuration.
    pub(crate) fingerprint: u64,
}

/// Why a tick is not started here.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
}

impl Claims {
    pub(crate) fn new(redlock: Redlock, replica: Word) -> Self {
        Self { redlock, replica }
    }

    /// The longest time to live that a job's lease may have.
    pub(crate) fn max_ttl(&self) -> Duration {
        self.redlock.max_ttl()
    }

    /// Claims `tick` of the job `id`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives back what was or will be granted; it may be that nobody can claim the
    /// tick any more.
    pub(crate) async fn claim(
        &self,
        id: &JobId,
        tick: DateTime<Utc>,
        terms: Terms,
    ) -> Result<Claim, Refusal> {
        let millis = u64::try_from(tick.timestamp_millis()).ok();
        let Some(due) = millis.and_then(Tick::from_millis) else {
            return Err(Refusal::too_late("it is before 1970 or after 9999"));
        };
        let options = ClaimOptions::new(self.replica.as_str())
            .early(EARLY)
            .start_within(terms.start_within)
            .ttl(terms.ttl)
            .wait(Wait::UpTo(WAIT))
            .fingerprint(terms.fingerprint);
        let claimed = self.redlock.claim(id.lease_key(), due, options).await;
        match claimed.map_err(|error| Refusal::by(&error))? {
            ClaimOutcome::Won(claim) => {
                if let Some(run) = claim.last() {
                    agrees(id, run, terms);
                }
                Ok(*claim)
            }
            ClaimOutcome::AlreadyClaimed { run, .. } => {
                let detail = run.map(|run| match agrees(id, &run, terms) {
                    true => format!("claimed by {}", run.replica),
                    false => format!(
                        "claimed by {}, which has another configuration",
                        run.replica
                    ),
                });
                let outcome = Outcome::NotWinner;
                Err(Refusal { outcome, detail })
            }
            ClaimOutcome::TooEarly { by } => Err(Refusal {
                outcome: Outcome::TooEarly,
                detail: Some(format!("by the nodes' clocks it may start in {by:?}")),
            }),
            ClaimOutcome::TooLate { by } => Err(Refusal::too_late(format!(
                "by the nodes' clocks {by:?} more than start_within, which is {:?}",
                terms.start_within
            ))),
            other => Err(Refusal {
                outcome: Outcome::NoQuorum,
                detail: Some(format!(
                    "too few nodes have confirmed that they remember it: {other:?}"
                )),
            }),
        }
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

    /// What a claim's error means for the tick.
    fn by(error: &AcquireError) -> Self {
        let outcome = match error.kind() {
            AcquireErrorKind::Contended => {
                return Self {
                    outcome: Outcome::Busy,
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

/// Whether the replica that claimed a run has the same configuration of the job as this one.
///
/// Those that do not agree are not refused, but somebody should know.
fn agrees(id: &JobId, run: &RunRecord, terms: Terms) -> bool {
    let agrees = run.fingerprint == terms.fingerprint;
    if !agrees {
        tracing::warn!(
            job = &**id.name(),
            replica = %run.replica,
            "another replica has another configuration of the job"
        );
    }
    agrees
}

/// By how much a tick may be claimed before its time, by the nodes' clocks.
///
/// A replica's clock may be ahead of theirs by so much; the same on all replicas of all versions.
const EARLY: Duration = Duration::from_secs(5);

/// How long a claim waits for the job's lease.
///
/// Long enough to settle among replicas that ask at once, and short enough that a tick does not queue
/// up behind a run that overruns.
const WAIT: Duration = Duration::from_secs(1);
