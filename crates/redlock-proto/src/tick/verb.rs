use std::time::Duration;

use super::Series;
use crate::{JobEntry, NodeKey, OwnerId, Tick, Window};

/// An instruction to a node for a job: for its lock, and for the memory of its runs.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a node must handle every verb")]
pub enum JobVerb {
    /// Take the job's lock, as an acquire does, if the run of the tick is after the watermark of its series and the node's own
    /// clock is in the tick's window.
    ///
    /// It changes nothing else: the tick is not claimed before the [`Commit`](Self::Commit).
    Claim {
        /// The lock.
        lock: NodeKey,
        /// On whose behalf; in a box, because every request carries the room of the largest.
        owner: Box<OwnerId>,
        /// The time for which the node keeps the lock.
        ttl: Duration,
        /// The least value that the counter becomes.
        proposal: u64,
        /// The series of the tick.
        series: Series,
        /// The tick.
        tick: Tick,
        /// The number of its run.
        attempt: u8,
        /// The window in which it may be claimed.
        window: Window,
    },
    /// Make the entry the watermark of its series if the owner has the lock, and keep the lock for `ttl` from now.
    ///
    /// Said twice, it is done once.
    Commit {
        /// The lock.
        lock: NodeKey,
        /// On whose behalf; in a box, because every request carries the room of the largest.
        owner: Box<OwnerId>,
        /// The time for which the node keeps the lock.
        ttl: Duration,
        /// The run, whose token the counter becomes at least.
        entry: JobEntry,
    },
    /// Say what came of a run that the node remembers; never add one.
    Record {
        /// The run, with another text.
        entry: JobEntry,
        /// The time for which this is worth saying again, should it fail.
        ttl: Duration,
    },
    /// Forget a run that was never started, and never will be: a later claim may have its tick.
    ///
    /// Only the claimant itself asks for this, before it lets the lock go, and only of the very entry that it asked
    /// to [`Commit`](Self::Commit).
    Withdraw {
        /// The run, as it was to be remembered.
        entry: JobEntry,
        /// The time for which this is worth saying again, should it fail.
        ttl: Duration,
    },
    /// Asks for all lines that the node remembers, and whether the lock is free.
    Read {
        /// The lock.
        lock: NodeKey,
    },
}

/// The reason for which a node does not give a tick away.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a client must handle every refusal"
)]
pub enum NoClaim {
    /// This run was claimed: the watermark is not before the run of the tick.
    Passed(JobEntry),
    /// The node's clock has so far to go until the window opens.
    Early {
        /// The time that is missing.
        by: Duration,
    },
    /// The window has closed, by the node's clock.
    Late {
        /// The time that is over.
        by: Duration,
    },
    /// The tick could have been claimed before the node forgot what was.
    ///
    /// It remembers since when: the *horizon* is what its clock showed when it agreed with a majority's after the
    /// quarantine.
    /// No tick was claimed on it before its window opened.
    Forgot,
}
