use std::time::Duration;

use crate::{JobEntry, NodeKey, OwnerId, Tick, Window};

/// What a node is asked to do with a job: its lock, and what is remembered of its runs.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a node must handle every verb")]
pub enum JobVerb {
    /// Take the job's lock, as an acquire does, if the tick is after the watermark and the node's own clock is
    /// in the tick's window.
    ///
    /// It changes nothing else: the tick is not claimed before the [`Commit`](Self::Commit).
    Claim {
        /// The lock.
        lock: NodeKey,
        /// On whose behalf.
        owner: OwnerId,
        /// How long the node keeps the lock.
        ttl: Duration,
        /// What the counter becomes at least.
        proposal: u64,
        /// The tick.
        tick: Tick,
        /// When it may be claimed.
        window: Window,
    },
    /// Make the entry's tick the watermark if the owner has the lock, and keep the lock for `ttl` from now.
    ///
    /// Said twice, it is done once.
    Commit {
        /// The lock.
        lock: NodeKey,
        /// On whose behalf.
        owner: OwnerId,
        /// How long the node keeps the lock.
        ttl: Duration,
        /// The run, whose token the counter becomes at least.
        entry: JobEntry,
    },
    /// Say what came of a run that the node remembers; never add one.
    Record {
        /// The run, with another text.
        entry: JobEntry,
    },
    /// Forget a run that was never started, and never will be: a later claim may have its tick.
    ///
    /// Only the claimant itself asks for this, before it lets the lock go, and only of the very entry that it asked
    /// to [`Commit`](Self::Commit).
    Withdraw {
        /// The run, as it was to be remembered.
        entry: JobEntry,
        /// How long this is worth saying again, should it fail.
        ttl: Duration,
    },
    /// Which runs do you remember, and is the lock free?
    Read {
        /// The lock.
        lock: NodeKey,
    },
}

/// Why a node does not give a tick away.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a client must handle every refusal"
)]
pub enum NoClaim {
    /// This run, of the tick or a later one, was claimed: the watermark is not before the tick.
    Passed(JobEntry),
    /// The node's clock has so far to go until the window opens.
    Early {
        /// How far.
        by: Duration,
    },
    /// The window has closed, by the node's clock.
    Late {
        /// How long ago.
        by: Duration,
    },
    /// The tick could have been claimed before the node forgot what was.
    ///
    /// It remembers since when: the *horizon* is what its clock showed when it agreed with a majority's after the
    /// quarantine, and no tick was claimed on it before its window opened.
    Forgot,
}
