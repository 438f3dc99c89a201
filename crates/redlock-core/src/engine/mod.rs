//! The driver: it owns the connections, the timers and every unfinished piece of business, and does what the protocol's
//! state machine says.
//!
//! It runs on a thread of its own, or for a lone caller on the caller's runtime (`owner`).
//!
//! Callers send [`DriverCommand`]s and await an answer.
//! They leave word of leases that change hands among them, which the driver finds when it wakes.
//! Nothing they do or stop doing can leave the driver's state half-changed.
//! A caller that goes away is noticed by what it drops: an unanswered acquire abandons its acquisition, a
//! [`HeldLease`] releases its lease.

mod alarm;
mod call_metrics;
mod driver;
mod effects;
mod entropy;
mod hand_overs;
mod handle;
mod held;
mod link;
mod log;
mod owner;
mod subscription;
mod tasks;

use std::time::Duration;

use redlock_proto::{
    Acquire, Instant, JobRecord, NodeAnswer, NodeKey, NodeTime, NotClaimed, Note, RunRecord,
    TickClaim, Word,
};
use tokio::sync::oneshot::Sender;

pub(crate) use self::{
    driver::EngineConfig,
    handle::EngineHandle,
    held::{HeldLease, Parked, Scoped},
    link::LinkState,
    log::Origin,
    tasks::{Placement, start},
};
use crate::{
    AcquireError, ExtendError, NodeReport, ReleaseError, key::SlotsOf, lease::LeaseRequest,
};

/// A command of a caller to the driver, with the sender of its answer.
///
/// The driver keeps one that it cannot answer at once, until the protocol has the answer.
#[derive(Debug)]
enum DriverCommand {
    Acquire {
        id: u64,
        acquire: Box<Acquire>,
        claim: Option<Box<TickClaim>>,
        caller: AcquireCaller,
    },
    /// Acquires an exclusive lease beside a shared one of the same holder.
    Upgrade {
        id: u64,
        lease: u64,
        caller: AcquireCaller,
    },
    Abandon {
        id: u64,
    },
    /// Records the outcome of the run under a lease.
    Finish {
        lease: u64,
        outcome: Word,
        took: Duration,
        note: Option<Note>,
    },
    ReadJob {
        job: NodeKey,
        lock: NodeKey,
        /// The only node to ask, if not all.
        at: Option<usize>,
        answer: Sender<JobAnswer>,
    },
    Extend {
        lease: u64,
        answer: Sender<Result<(), ExtendError>>,
    },
    /// Lets readers share a lease from now on.
    Downgrade {
        lease: u64,
        answer: Sender<Result<(), ExtendError>>,
    },
    Release {
        lease: u64,
        answer: Option<Sender<Result<(), ReleaseError>>>,
    },
    Leave {
        lease: u64,
    },
    /// Makes the driver see now that leases have changed hands.
    SeeHandOvers,
    Bless {
        answer: Sender<Vec<NodeAnswer>>,
    },
    Standing {
        answer: Sender<Vec<NodeAnswer>>,
    },
    NodeTime {
        answer: Sender<Option<NodeTime>>,
    },
    Close {
        answer: Sender<()>,
    },
}

/// A caller that waits for an acquisition; an answer that it does not take drops the lease in it.
#[derive(Debug)]
struct AcquireCaller {
    subject: LeaseRequest,
    /// How many attempts were begun.
    attempts: u32,
    /// Whether it is a part of a search for a slot.
    is_part: bool,
    answer: Sender<AcquireAnswer>,
}

/// An acquisition: the attempts that one caller makes until it wins, or its wait ends.
#[derive(Debug)]
pub(crate) struct AcquireRequest {
    pub(crate) subject: LeaseRequest,
    /// The slots of which the key is one.
    pub(crate) slots: Option<SlotsOf>,
    /// The number of fencing tokens to reserve.
    pub(crate) tokens: u32,
    pub(crate) wait_until: Instant,
    pub(crate) quorum_wait: Option<Duration>,
    /// When the caller asked for it.
    pub(crate) asked_at: Instant,
    /// Whether it is made in a scope, whose end takes its leases away: others must not join them.
    pub(crate) is_scoped: bool,
    /// Whether it is one of several by which one caller looks for a slot: none of them is counted by itself.
    pub(crate) is_part: bool,
    /// The lease of the caller before it in this process, which is released once the driver was asked for this one.
    pub(crate) before: Option<Parked>,
    /// The tick that is to be claimed together with the lease.
    pub(crate) claim: Option<Box<TickClaim>>,
}

/// After how many attempts an acquisition is over, and its result: the lease, and the newest run before it if a tick was
/// claimed.
pub(crate) type AcquireAnswer = (u32, Result<(HeldLease, Option<RunRecord>), NotWon>);

/// What nodes remember of a job, if a majority said, and what each said.
type JobAnswer = (Option<JobRecord>, Vec<NodeAnswer>);

/// An acquisition that has not won.
#[derive(Debug)]
pub(crate) enum NotWon {
    Failed(AcquireError),
    /// The tick was not won, and there is no use in another attempt.
    Refused(NotClaimed, Vec<NodeReport>),
}

impl NotWon {
    /// Says how many callers of this process would be ahead of another attempt.
    pub(crate) fn ahead(self, callers: usize) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(error.with_ahead(callers)),
            refused @ Self::Refused(..) => refused,
        }
    }

    /// Returns the error of an acquisition without a tick.
    pub(crate) fn into_error(self) -> AcquireError {
        match self {
            Self::Failed(error) => error,
            // invariant: nodes refuse only ticks that were claimed
            Self::Refused(..) => AcquireError::closed(),
        }
    }
}
