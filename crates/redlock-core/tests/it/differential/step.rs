//! What happens in a random sequence, in words that mean the same after some steps were left out.

use std::time::Duration;

use redlock_proto::LockMode;

/// One step of a sequence.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A call in this keyspace, of up to 16 requests.
    Call { keyspace: usize, asks: Vec<Ask> },
    /// The node's wall clock goes on, or is set forward.
    Forward(Duration),
    /// The node's wall clock is set back.
    Back(Duration),
    /// The node's wall clock shows this many microseconds after, or before, the end of a key that was written
    /// lately, which can be in either direction.
    ToEnd { which: usize, micros: i64 },
    /// The node's wall clock goes on by what was last told of the rest of a quarantine, and so many microseconds
    /// more or less.
    ToReady { keyspace: usize, micros: i64 },
    /// All data are dropped.
    Flush,
    /// The server's data are another's from now on, as far as it knows, and the same all the same.
    Adopt,
    /// All scripts are dropped.
    FlushScripts,
    /// The lock keys are deleted by hand.
    DropLocks,
    /// The user that makes the calls is given the right to publish, or loses it.
    MayPublish(bool),
    /// The server is killed and started again, with the data it has on disk.
    Restart,
    /// The server writes its data to disk, where the next start finds them.
    Save,
    /// The server writes its data to disk and reads them again.
    Reload,
    /// The server removes all keys that have expired.
    Expire,
    /// All that can be seen from outside is compared.
    Look,
}

/// One request of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    Acquire {
        keys: Span,
        owner: usize,
        ttl: Duration,
        proposal: Number,
        block: u32,
        wish: Option<Duration>,
        line: Option<Place>,
    },
    Extend {
        keys: Span,
        owner: usize,
        ttl: Duration,
        write_back: Option<Number>,
    },
    Heal {
        keys: Span,
        owner: usize,
        ttl: Duration,
        counter: Number,
    },
    Release {
        keys: Span,
        owner: usize,
    },
    Tombstone {
        keys: Span,
        owner: usize,
        ttl: Duration,
    },
    Claim {
        job: usize,
        key: usize,
        owner: usize,
        ttl: Duration,
        proposal: Number,
        tick: When,
        early: Duration,
        start_within: Duration,
    },
    Commit {
        job: usize,
        key: usize,
        owner: usize,
        ttl: Duration,
        token: Number,
        tick: When,
        text: &'static str,
    },
    Record {
        job: usize,
        /// Which of the runs, from the newest on.
        which: usize,
        /// Another token than that run has.
        offset: i64,
        text: &'static str,
    },
    Withdraw {
        job: usize,
        /// Which of the runs, from the newest on.
        which: usize,
        /// Another token than that run has.
        offset: i64,
        /// Another text than that run has.
        text: Option<&'static str>,
    },
    Read {
        job: usize,
        key: usize,
    },
    Tick,
    Sign {
        client: u64,
    },
    Inspect,
    Survey,
    Open {
        floor: Number,
        since: Since,
        /// So many milliseconds after or before what the clock shows; none if it blesses.
        horizon: Option<i64>,
    },
}

/// So many keys, one after the other, the first of which comes after the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) first: usize,
    pub(crate) count: usize,
    pub(crate) mode: LockMode,
    /// The number of slots of which a single key is one.
    pub(crate) slots: Option<u8>,
}

/// A counter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// This very number.
    Is(u64),
    /// What was last seen of this shard's counter, and so much more or less.
    Seen { shard: usize, offset: i64 },
}

/// The beginning of a quarantine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Since {
    /// The last one that the node reported, and `offset` microseconds after or before it.
    Told {
        offset: i64,
    },
    Never,
}

/// A tick, so many milliseconds after or before something.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Now {
        offset: i64,
    },
    /// The job's watermark.
    Watermark {
        offset: i64,
    },
    /// The beginning of the quarantine that was last told.
    Since {
        offset: i64,
    },
    /// What the node remembers nothing from before; now if there is no such time.
    Horizon {
        offset: i64,
    },
}

/// A place in a line: of few callers, which came at few moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) came: u64,
    pub(crate) client: u64,
    pub(crate) grant: Duration,
    pub(crate) stay: Duration,
    pub(crate) signs: bool,
}
