//! The history of a world as plain data: its recorder, a simulated world or a test with real servers, has it
//! judged by the same [`Checker`](crate::Checker).

use std::{sync::Arc, time::Duration};

use crate::Moment;

/// Something that happened; the checker gets it with its true time.
///
/// Numbers stand for things: each lease, waiter, client, node and key has its own number.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A client began to wait for an answer, which is due at a time.
    Waits {
        /// The waiter.
        waiter: u64,
        /// The client that must answer.
        client: usize,
        /// The end of the wait, after which no attempt begins but the first.
        until: Moment,
        /// The time at which the answer is due, had the client not stood still.
        due: Moment,
    },
    /// A client asks the nodes on behalf of a waiter.
    Tries {
        /// The waiter.
        waiter: u64,
    },
    /// The answer has come, or the waiter does not wait for it any more.
    Answered {
        /// The waiter.
        waiter: u64,
    },
    /// A client stood still for this long, up to now.
    StoodStill {
        /// The client.
        client: usize,
        /// The time for which it stood still.
        length: Duration,
    },
    /// A lease was handed out: from now on, its holder believes in the lease.
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
        /// The time after the deadline for which no other holder may have the key, unless the lease is released.
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
    /// Nodes are told the outcome of a run.
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
    /// A client that asked was told what nodes remember of a job.
    StatusRead {
        /// The job, whose lock is the key of the same number.
        job: usize,
        /// The time of the request.
        since: Moment,
        /// The runs that each node remembered at that time, the newest first: tick and token.
        known: Vec<Vec<(u64, u64)>>,
        /// The number of nodes that are a majority.
        majority: usize,
        /// The watermark that was reported, 0 for none.
        watermark: u64,
        /// The runs that were reported: tick and token, and the outcome of each run that has ended.
        runs: Vec<(u64, u64, Option<Arc<str>>)>,
        /// `true` if the lock was reported as free.
        is_free: bool,
    },
    /// A majority remembers a run at the end of a history, and not its outcome.
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
    /// A replica starts a tick and asked to refuse this after a run that was cut short: reported just before the start.
    Follows {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The tick up to which runs are settled, as far as that replica knows; 0 for none.
        settled: u64,
        /// The number of nodes that are a majority.
        majority: usize,
        /// The memory that each node has had ever since the tick was claimed: tick, token, and whether the run was cut
        /// short, for all it knows.
        remembered: Vec<Vec<(u64, u64, bool)>>,
    },
    /// A replica did not win a tick because the run before it was cut short.
    CutShort {
        /// The job.
        job: usize,
        /// The tick of the run before.
        tick: u64,
        /// Its fencing token.
        token: u64,
        /// Its outcome, if any node knew one.
        outcome: Option<Arc<str>>,
        /// The tick up to which runs were settled, as far as that replica knew; 0 for none.
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
    /// From now on nothing fails, and nodes do not forget what they remember.
    Mended,
    /// Everything that failed has recovered, and no client is killed any more.
    Settled,
    /// A replica that claimed a tick was told that this tick or a later one was claimed before.
    Passed {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The newest tick that was claimed.
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
    /// The holder no longer believes in the lease: it was told that the lease is lost, or it left the lease, or it has
    /// ended.
    Ended {
        /// The lease.
        lease: u64,
    },
    /// Other clients may share the keys of a lease from now on, which its holder has had alone.
    Downgraded {
        /// The lease.
        lease: u64,
    },
    /// The holder no longer needs the lease, and keeps it for the next holder in the same process.
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
    /// The holder has released the lease, whether it was lost or not.
    Released {
        /// The lease.
        lease: u64,
    },
    /// A node lost its data, including its counters.
    Forgot {
        /// The node.
        node: usize,
    },
    /// A node was started again with its data, and clients may not know of the restart: the node does not vote until it
    /// was told a floor.
    Restarted {
        /// The node.
        node: usize,
    },
    /// A node was told the floor of its counters, and to vote, and does from now on.
    Opened {
        /// The node.
        node: usize,
        /// The number of nodes that are the same server as another, as the client knew them when it told the node.
        duplicates: usize,
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
        /// `true` if a majority had confirmed the round in which the node reported that it had lost the key.
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
    /// Nothing keeps clients from a key from now on, so that a client must acquire it by a certain time.
    Free {
        /// The key.
        key: usize,
        /// The time.
        due: Moment,
    },
    /// A client that was closed has nothing more to do.
    Rests {
        /// The client.
        client: usize,
        /// The number of requests that it believes to be under way.
        requests: usize,
        /// `true` if the client reports that it is clean.
        is_clean: bool,
    },
}
