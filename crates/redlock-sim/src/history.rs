//! The history of a world as plain data: its recorder, a simulated world or a test with real servers, has it
//! judged by the same [`Checker`](crate::Checker).

use std::{sync::Arc, time::Duration};

use crate::Moment;

/// Something that happened, at a true time that is told with it.
///
/// Numbers stand for things: each lease, waiter, client, node and key has one of its own.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A client began to wait for an answer, which is due at a time.
    Waits {
        /// The one who waits.
        waiter: u64,
        /// The client that must answer.
        client: usize,
        /// The time at which the answer is due, had the client not stood still.
        due: Moment,
    },
    /// A client asks the nodes on behalf of a waiter.
    Tries {
        /// The one who waits.
        waiter: u64,
    },
    /// The answer has come, or is not waited for any more.
    Answered {
        /// The one who waited.
        waiter: u64,
    },
    /// A client stood still for this long, up to now.
    StoodStill {
        /// The client.
        client: usize,
        /// For how long.
        length: Duration,
    },
    /// A lease was handed out: from now on, its holder believes in it.
    Acquired {
        /// The lease.
        lease: u64,
        /// The client that has it.
        client: usize,
        /// The keys that are locked.
        key: usize,
        /// Set if others may share it.
        is_shared: bool,
        /// The fencing tokens that it has reserved.
        tokens: (u64, u64),
        /// The time at which the attempt that won it was started.
        started: Moment,
        /// The time at which its deadline is reached on the holder's clock.
        until: Moment,
        /// For how much longer than that nobody else may have the key, unless the lease is released.
        rest: Duration,
        /// The time up to which a majority had promised to keep the key, if that is known.
        promised: Option<Moment>,
    },
    /// Nodes are asked to remember that a tick was claimed.
    Commits {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The fencing token of the run.
        token: u64,
    },
    /// A node remembers a run.
    Kept {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The fencing token.
        token: u64,
    },
    /// Nodes are told what came of a run.
    Recorded {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The fencing token.
        token: u64,
        /// The outcome of the run.
        outcome: Arc<str>,
    },
    /// Somebody who asked was told what nodes remember of a job.
    StatusRead {
        /// The job, whose lock is the key of the same number.
        job: usize,
        /// The time at which it was asked for.
        since: Moment,
        /// The watermark of a majority then, 0 for none.
        known: u64,
        /// The watermark that was told of, 0 for none.
        watermark: u64,
        /// The runs that were told of: tick and token, and how each ended, if it did.
        runs: Vec<(u64, u64, Option<Arc<str>>)>,
        /// `true` if the lock was said to be free.
        is_free: bool,
    },
    /// A majority remembers a run at the end of a history, and not how it ended.
    LeftOpen {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The fencing token.
        token: u64,
    },
    /// A tick was handed out: its run starts.
    Started {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The fencing token.
        token: u64,
        /// `true` if the clocks of a majority of the nodes were in its window.
        timely: bool,
    },
    /// Somebody starts a tick who wants no run before it that was cut short: told just before it starts.
    Follows {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The tick up to which runs are settled, as far as that one knows; 0 for none.
        settled: u64,
        /// The number of nodes that are a majority.
        majority: usize,
        /// The memory that each node has had ever since the tick was claimed: tick, token, and whether the run was cut
        /// short, for all it knows.
        remembered: Vec<Vec<(u64, u64, bool)>>,
    },
    /// Somebody did not win a tick because the run before it was cut short.
    CutShort {
        /// The job.
        job: usize,
        /// The tick of the run before.
        tick: u64,
        /// Its fencing token.
        token: u64,
        /// Its outcome, if anybody said so.
        outcome: Option<Arc<str>>,
        /// The tick up to which runs were settled, as far as that one knew; 0 for none.
        settled: u64,
    },
    /// A claimant of a tick has been told that it was not won, or does not wait for it any more.
    NotStarted {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
    },
    /// The nodes remember ticks up to here, so many of them, at the end of a history.
    Remembered {
        /// The job.
        job: usize,
        /// The tick up to which a majority of the nodes remembers, and 0 if none does.
        watermark: u64,
    },
    /// Nothing goes wrong any more: what nodes remember from now on, they do not forget.
    Mended,
    /// All that went wrong has mended, and nobody is killed any more.
    Settled,
    /// Somebody who claimed a tick was told that it was claimed before, or a later one.
    Passed {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The newest one that was claimed.
        watermark: u64,
    },
    /// A lease was prolonged.
    Extended {
        /// The lease.
        lease: u64,
        /// The time at which its deadline is reached on the holder's clock.
        until: Moment,
        /// The time up to which a majority had promised to keep the key, if that is known.
        promised: Option<Moment>,
    },
    /// The holder does not believe in the lease any more: it was told that the lease is lost, or left it, or is
    /// gone.
    Ended {
        /// The lease.
        lease: u64,
    },
    /// Others may share the keys of a lease from now on, which its holder has had alone.
    Downgraded {
        /// The lease.
        lease: u64,
    },
    /// The holder is done with the lease, and keeps it for the next one in the same process.
    Parked {
        /// The lease.
        lease: u64,
    },
    /// The next holder in the same process has the lease.
    HandedOver {
        /// The lease.
        lease: u64,
        /// The new holder's fencing token, one of those that the lease has reserved.
        token: u64,
        /// The time at which its deadline is reached on the holder's clock.
        until: Moment,
    },
    /// The holder has released the lease, lost or not.
    Released {
        /// The lease.
        lease: u64,
    },
    /// A node lost data, its counters among it.
    Forgot {
        /// The node.
        node: usize,
    },
    /// A node was started again and has its data, and nobody may know so: it does not vote until it was told a floor.
    Restarted {
        /// The node.
        node: usize,
    },
    /// A node was told the floor of its counters, and to vote, and does from now on.
    Opened {
        /// The node.
        node: usize,
    },
    /// A node answered, and what it grants is a vote.
    Voted {
        /// The node.
        node: usize,
    },
    /// A client gave a key to a node that had lost it.
    Healed {
        /// The node.
        node: usize,
        /// `true` if a majority had confirmed the round in which the node said so.
        confirmed: bool,
    },
    /// A node was found to have a key of an owner that had given it up.
    KeyFound {
        /// The node.
        node: usize,
        /// The key.
        key: usize,
        /// The time at which it had to be gone.
        due: Moment,
    },
    /// Nothing keeps clients from a key from now on, so that one must acquire it by a time.
    Free {
        /// The key.
        key: usize,
        /// The time.
        due: Moment,
    },
    /// A client that was closed has nothing to do any more.
    Rests {
        /// The client.
        client: usize,
        /// The number of requests that it believes to be under way.
        requests: usize,
        /// `true` if it says that it is clean.
        is_clean: bool,
    },
}
