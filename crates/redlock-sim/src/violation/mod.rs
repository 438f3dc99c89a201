mod display;

use crate::Moment;

/// A promise that was broken.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Violation {
    /// Two clients believed in a lease on one key at the same time.
    // Shows: T1.2.
    Overlap {
        /// The key.
        key: usize,
        /// The lease that was there.
        earlier: u64,
        /// The lease that came on top of it.
        later: u64,
        /// The time at which the first lease would have ended.
        until: Moment,
    },
    /// A lease was handed out when it had already ended.
    // Shows: T1.1, T2.5.
    Stillborn {
        /// The lease.
        lease: u64,
        /// The time at which it had ended.
        until: Moment,
    },
    /// A holder still believed in a lease that had ended, because it was not told in time.
    // Shows: T2.1.
    LateLoss {
        /// The lease.
        lease: u64,
        /// The time at which it had ended.
        until: Moment,
    },
    /// A key was handed out while it had to rest after a lease that was not released.
    // Shows: N2.
    NoRest {
        /// The key.
        key: usize,
        /// The lease that was not released.
        earlier: u64,
        /// The lease that came too soon.
        later: u64,
        /// The time up to which the key had to rest.
        until: Moment,
    },
    /// A lease has a fencing token that is not greater than that of an earlier one.
    // Shows: T3.5.
    TokenOrder {
        /// The key.
        key: usize,
        /// The lease.
        lease: u64,
        /// Its token.
        token: u64,
        /// The greatest token of the leases before it.
        greatest: u64,
    },
    /// A tick was started twice.
    // Shows: T4.6.
    StartedAgain {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
    },
    /// A tick was started after a later one.
    // Shows: T4.10.
    StartedAfter {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The later one.
        after: u64,
    },
    /// A tick was started after a later one, and no node remembered it when the later one was started: so the later
    /// tick was claimed first.
    // Shows: T4.6.
    Overtaken {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The newest of the later ones.
        after: u64,
    },
    /// A tick of a job was started although the run before it was cut short and is not settled, and a majority
    /// remembers that; the replica that started it had asked to refuse this.
    // Shows: R6.2.
    FollowsCutShort {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
        /// The tick of the run before.
        after: u64,
    },
    /// A tick was started although the clocks of a majority of the nodes were not in its window.
    // Shows: T4.2.
    Untimely {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
    },
    /// A replica was told of a tick that no replica has claimed.
    NeverClaimed {
        /// The job.
        job: usize,
        /// The tick that was reported.
        watermark: u64,
    },
    /// Nodes were asked to remember a tick, and no replica learnt its outcome.
    // Shows: T4.12.
    TickLost {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
    },
    /// A tick was started, and no majority remembers it though no node has lost data since.
    // Shows: T4.4.
    NotRemembered {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
    },
    /// A node freed the lock of a run because that was released, and had not heard of the end of the run, although it had not
    /// refused to store it.
    // Shows: R6.8.
    FreedUntold {
        /// The node.
        node: usize,
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
    },
    /// A client that asked for a job's status was told of an older watermark than a majority had had before.
    // Shows: R6.4.
    StatusBehind {
        /// The job.
        job: usize,
        /// The watermark that was reported, 0 for none.
        watermark: u64,
        /// The watermark of a majority.
        known: u64,
    },
    /// Nodes were told, or reported, that a run ended in a way in which it did not.
    // Shows: R6.4.
    FalseRecord {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
    },
    /// A client that asked for a job's status was told that its lock is free, although it was held all the time.
    // Shows: R6.4.
    FalselyFree {
        /// The job.
        job: usize,
        /// The lease.
        lease: u64,
    },
    /// A tick was not won although nothing prevented it.
    Unreasoned {
        /// The job.
        job: usize,
        /// The tick.
        tick: u64,
    },
    /// A lease was prolonged after a newer one on its key had been handed out.
    // Shows: T1.8.
    StaleExtension {
        /// The key.
        key: usize,
        /// The lease that was prolonged.
        lease: u64,
        /// The newest lease.
        newer: u64,
    },
    /// A lease was prolonged after it had ended.
    // Shows: T1.8.
    Revived {
        /// The lease.
        lease: u64,
        /// The time at which it had ended.
        until: Moment,
    },
    /// A holder may believe in a lease for longer than a majority has promised to keep its key.
    // Shows: T1.1, T1.10.
    Unbacked {
        /// The lease.
        lease: u64,
        /// The time up to which its holder believes in it.
        until: Moment,
        /// The time up to which a majority keeps the key.
        promised: Moment,
    },
    /// A client lost a lease before its deadline although no node that votes had lost its key, or a lease that it renews
    /// although a majority of the nodes was well all the time.
    // Shows: A3, T6.3.
    LostInVain {
        /// The lease.
        lease: u64,
    },
    /// An acquire failed, although a majority of the nodes was well all the time and no other holder was in the way.
    // Shows: T6.6.
    FailedInVain {
        /// The client.
        client: usize,
        /// The key.
        key: usize,
    },
    /// An acquire or a lease of a client that gets its CPU in slices failed for that, though all nodes were well.
    // Shows: T6.10.
    OwnSlowness {
        /// The client.
        client: usize,
        /// The thing that failed.
        what: &'static str,
    },
    /// An acquire failed as contended, although a majority had granted its last attempt.
    // Shows: T6.9.
    FalselyContended {
        /// The client.
        client: usize,
    },
    /// Another attempt began on behalf of a waiter after its wait.
    // Shows: T6.9.
    LateAttempt {
        /// The waiter.
        waiter: u64,
    },
    /// A waiter was not answered in time.
    // Shows: T6.9.
    Unanswered {
        /// The waiter.
        waiter: u64,
        /// The time at which the answer was due.
        due: Moment,
    },
    /// A node's grants were counted as votes too soon after it had lost data, or before it was told the floor of its
    /// counters.
    // Shows: L1.1.
    EarlyVote {
        /// The node.
        node: usize,
        /// The time at which it lost data.
        forgot: Moment,
    },
    /// A node was given a key again although no majority had confirmed the lease.
    // Shows: T1.9.
    UnconfirmedHeal {
        /// The node.
        node: usize,
    },
    /// A node changed a key for an owner that did not have it, or did something else than it reported.
    // Shows: T1.5.
    ForeignKey {
        /// The node.
        node: usize,
        /// The key.
        key: usize,
        /// The mistake.
        what: &'static str,
    },
    /// A node took a key for an owner that had told it to delete that key.
    // Shows: T5.4.
    Resurrected {
        /// The node.
        node: usize,
        /// The key.
        key: usize,
    },
    /// A client gave up a key and did not tell a node that has it, or may take it.
    // Shows: T5.1.
    Forgotten {
        /// The node.
        node: usize,
        /// The key.
        key: usize,
    },
    /// A key that was given up was not gone when it should have been.
    // Shows: T5.5.
    KeyLeft {
        /// The node.
        node: usize,
        /// The key.
        key: usize,
        /// The time at which it had to be gone.
        due: Moment,
    },
    /// No client acquired a key although nothing prevented it.
    // Shows: R4.8, T6.1.
    Starved {
        /// The key.
        key: usize,
        /// The time by which a client had to acquire it.
        due: Moment,
    },
    /// A client that was closed does not come to rest.
    // Shows: T5.2.
    Leak {
        /// The client.
        client: usize,
        /// The number of requests that it believes to be under way.
        requests: usize,
    },
    /// The callers of one process did not take their turns at a key as they should have.
    // Shows: R3.5, T1.11.
    OutOfTurn {
        /// The client.
        client: usize,
        /// The key.
        key: usize,
        /// The mistake.
        what: &'static str,
    },
    /// A client tried again for a waiter without a pause.
    // Shows: T6.8.
    Spins {
        /// The waiter.
        waiter: u64,
    },
    /// The world had too many events to come to its end.
    Endless,
    /// The code under test panicked.
    Panics,
}

impl Violation {
    /// Returns the name of the violation, for counts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Overlap { .. } => "Overlap",
            Self::Stillborn { .. } => "Stillborn",
            Self::LateLoss { .. } => "LateLoss",
            Self::NoRest { .. } => "NoRest",
            Self::TokenOrder { .. } => "TokenOrder",
            Self::StartedAgain { .. } => "StartedAgain",
            Self::StartedAfter { .. } => "StartedAfter",
            Self::Overtaken { .. } => "Overtaken",
            Self::Untimely { .. } => "Untimely",
            Self::FollowsCutShort { .. } => "FollowsCutShort",
            Self::NeverClaimed { .. } => "NeverClaimed",
            Self::TickLost { .. } => "TickLost",
            Self::NotRemembered { .. } => "NotRemembered",
            Self::FreedUntold { .. } => "FreedUntold",
            Self::StatusBehind { .. } => "StatusBehind",
            Self::FalseRecord { .. } => "FalseRecord",
            Self::FalselyFree { .. } => "FalselyFree",
            Self::Unreasoned { .. } => "Unreasoned",
            Self::StaleExtension { .. } => "StaleExtension",
            Self::Revived { .. } => "Revived",
            Self::Unbacked { .. } => "Unbacked",
            Self::LostInVain { .. } => "LostInVain",
            Self::FailedInVain { .. } => "FailedInVain",
            Self::OwnSlowness { .. } => "OwnSlowness",
            Self::FalselyContended { .. } => "FalselyContended",
            Self::LateAttempt { .. } => "LateAttempt",
            Self::Unanswered { .. } => "Unanswered",
            Self::EarlyVote { .. } => "EarlyVote",
            Self::UnconfirmedHeal { .. } => "UnconfirmedHeal",
            Self::ForeignKey { .. } => "ForeignKey",
            Self::Resurrected { .. } => "Resurrected",
            Self::Forgotten { .. } => "Forgotten",
            Self::KeyLeft { .. } => "KeyLeft",
            Self::Starved { .. } => "Starved",
            Self::Leak { .. } => "Leak",
            Self::OutOfTurn { .. } => "OutOfTurn",
            Self::Spins { .. } => "Spins",
            Self::Endless => "Endless",
            Self::Panics => "Panics",
        }
    }

    /// Returns whether the violation follows from a node's clock that was set while the node kept a key, which no lease
    /// survives.
    pub const fn needs_steady_clocks(&self) -> bool {
        matches!(
            self,
            Self::Overlap { .. }
                | Self::StaleExtension { .. }
                | Self::NoRest { .. }
                | Self::StartedAfter { .. }
                | Self::FalselyFree { .. }
        )
    }
}
