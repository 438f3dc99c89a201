//! The requests of a driver to a client: to win a lease, or a lease and a tick with it.

use std::{sync::Arc, time::Duration};

use crate::{
    Fairness, HolderLabel, Instant, KeySet, LockMode, NodeKey, RunRecord, Series, Tick, Timing,
    Window, Word,
};

/// The request of an acquisition.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must settle every part of it"
)]
pub struct Acquire {
    /// The keys on the nodes; a claim has one.
    pub keys: KeySet,
    /// The mode in which they are held; a claim has its lock alone.
    pub mode: LockMode,
    /// The lengths of time of the lease.
    pub timing: Timing,
    /// `true` if the lease is extended without being asked.
    pub renew: bool,
    /// The longest time for which it may be held, however often it is extended.
    pub max_hold: Option<Duration>,
    /// The number of fencing tokens to reserve, so that the lease can be handed over so often but one.
    pub tokens: u32,
    /// The order in which callers have the keys.
    pub fairness: Fairness,
    /// The moment at which the caller came, which decides about its place among callers of other clients.
    pub came: Instant,
    /// The time up to which to try again.
    pub wait_until: Instant,
    /// The time for which the client tries again while too few nodes answer with a vote, from the moment at which it
    /// saw them fail; `None`: the whole wait.
    pub quorum_wait: Option<Duration>,
    /// The label of the holder that other clients can read.
    pub label: Option<HolderLabel>,
}

/// The request of a claim, besides the lease.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must settle every part of it"
)]
pub struct TickClaim {
    /// The key of what nodes remember of the job.
    pub job: NodeKey,
    /// The series of the tick.
    pub series: Series,
    /// The tick.
    pub tick: Tick,
    /// The number of its run, from 1 to 99.
    pub attempt: u8,
    /// The window in which it may be claimed, by the clocks of the nodes.
    pub window: Window,
    /// A number that stands for the job's configuration, so that replicas which differ are noticed.
    pub fingerprint: u64,
    /// The claimant's name.
    pub replica: Word,
    /// The kind of run before it that is to be started again first; `None` if none is.
    pub not_after: Option<NotAfter>,
}

/// The runs that were cut short, and that must be settled before a later tick is claimed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must settle every part of it"
)]
pub struct NotAfter {
    /// The outcomes of runs that were cut short; see [`RunRecord::was_cut_short`].
    pub outcomes: Arc<[Word]>,
    /// The runs of ticks up to this one are settled, however they ended.
    pub settled: Option<Tick>,
}

impl NotAfter {
    /// Returns whether a claim may not follow `last`, whose lock is free.
    pub(super) fn forbids(&self, last: &RunRecord) -> bool {
        last.line(&self.outcomes, &[]).is_undone(self.settled)
    }
}

/// The reason for which a tick was not claimed, where trying again would not help.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NotClaimed {
    /// The tick was claimed, or a later one.
    Passed {
        /// The newest tick that was claimed, by the answers of the nodes that the client heard.
        watermark: Tick,
        /// That run; `None` if only its tick is remembered, or if this version cannot read it.
        last: Option<RunRecord>,
    },
    /// No majority can grant the tick before the wait ends: too many clocks are before its window.
    TooEarly {
        /// The time until enough of these clocks may have reached the window.
        by: Duration,
    },
    /// No majority can grant the tick: too many clocks are past its window.
    TooLate {
        /// The least time by which it is too late.
        by: Duration,
    },
    /// Too few nodes remember the time of the tick to tell whether it was claimed.
    Forgotten {
        /// `true` if that will stay so; otherwise nodes that have not answered may still grant it.
        for_good: bool,
    },
    /// The newest run before it was cut short, and the claimant does not know it as settled.
    ///
    /// The nodes had granted the tick and were not asked to remember it, so any client can claim it.
    CutShort {
        /// That run.
        last: RunRecord,
    },
    /// The nodes had granted the tick, and too few have confirmed in time that they remember it.
    ///
    /// The tick was not started, and perhaps no client can claim it any more.
    Unconfirmed,
}
