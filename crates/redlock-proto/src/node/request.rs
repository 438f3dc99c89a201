use std::{sync::Arc, time::Duration};

use crate::{
    FencingToken, HolderLabel, InLine, JobEntry, JobVerb, KeySet, LockMode, NoClaim, NodeKey,
    NodeOutcome, NodeTime, OwnerId, ServerInfo, Standing,
};

/// One operation on one node.
///
/// All nodes of a lock are asked the same.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a node must handle every request")]
pub enum Request {
    /// An operation on a lock.
    Lock {
        /// The verb.
        verb: Verb,
        /// The lock; all requests for it share one, however many they are.
        lock: Arc<Lock>,
    },
    /// An operation on the node itself.
    Node(NodeVerb),
    /// An operation on a job.
    Job {
        /// The verb.
        verb: JobVerb,
        /// The key of what is remembered of it.
        job: NodeKey,
    },
}

/// The subject of an operation on a lock: its keys, and the owner that has them or wants them.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a node must handle every part of it"
)]
pub struct Lock {
    /// The mode in which the keys are held: exclusive, shared, or as an upgrade.
    pub mode: LockMode,
    /// The keys on the node, for all of which an operation is done or for none.
    pub keys: KeySet,
    /// The owner on whose behalf the operation is done.
    pub owner: OwnerId,
}

/// An instruction to a node for a key, or in one step for each of several.
///
/// Several have one counter: the greatest of theirs, and each of theirs becomes what it becomes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a node must handle every verb")]
pub enum Verb {
    /// Take the key for `ttl` if no owner has it, unless the owner was tombstoned; count the lease.
    Acquire {
        /// The time for which the node keeps the key.
        ttl: Duration,
        /// The least value that the counter becomes.
        proposal: u64,
        /// The number of tokens to reserve.
        block: u32,
        /// The time for which no other owner may come to share the keys, if only sharers are in the way.
        ///
        /// Only for an owner that wants them exclusively, and waits.
        wish: Option<Duration>,
        /// The caller's place in the line for the key, if it waits there while another owner has it.
        ///
        /// Only for one key in exclusive mode; a transaction does not look at it.
        line: Option<InLine>,
    },
    /// Keep the key for `ttl` from now if the owner has it; never create it.
    Extend {
        /// The time for which the node keeps the key.
        ttl: Duration,
        /// A counter to write back, if the owner has the key.
        write_back: Option<u64>,
    },
    /// As [`Extend`](Self::Extend), and take the key if no owner has it, unless the owner was tombstoned.
    ///
    /// Only on behalf of an owner whose extension a majority has just confirmed.
    Heal {
        /// The time for which the node keeps the key.
        ttl: Duration,
        /// The least value of the counter, if the owner has the key.
        counter: u64,
    },
    /// Let the key go if the owner has it.
    Release {
        /// The longest time that the key can stay, should the release have to be made again.
        ttl: Duration,
    },
    /// As [`Release`](Self::Release), and refuse this owner for `ttl`: a request of its that is still on its way
    /// must not take the key when it arrives.
    Tombstone {
        /// For how long.
        ttl: Duration,
    },
}

/// An instruction or a question to a node about itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a node must handle every verb")]
pub enum NodeVerb {
    /// Nothing: the client wants the standing that comes with every answer.
    Look,
    /// Remember for [`SIGN`](Self::SIGN) that a client is alive that has callers in line.
    ///
    /// The answer is [`Missing`](Reply::Missing) if the node remembered none, and so may have passed over these callers.
    Sign {
        /// The number of the client.
        client: u64,
    },
    /// Asks the node what it is.
    Inspect,
    /// Asks the node for the greatest of its counters.
    Survey,
    /// Vote from now on.
    Open {
        /// The least value of the counters.
        floor: u64,
        /// Only in the quarantine that began at this moment, by the node's clock: since then it has forgotten
        /// nothing.
        since: NodeTime,
        /// The reading of its clock when it agreed with a majority's, after the quarantine had ended: up to then it may
        /// have forgotten ticks.
        ///
        /// Not what its clock shows when it is told: that may be wrong by then.
        /// `None` before the quarantine has ended, because an operator vouches that nothing was forgotten.
        horizon: Option<NodeTime>,
    },
}

impl NodeVerb {
    /// For how long a node remembers a sign of life.
    pub const SIGN: Duration = Duration::from_secs(3);
}

impl Request {
    /// Returns whether this is due when a lease ends, whatever the node's standing: it lets a key go, or says what came of the
    /// run under it.
    pub const fn is_release(&self) -> bool {
        self.worth_repeating_for().is_some()
    }

    /// Returns whether this takes, keeps or releases one key in exclusive mode, and does nothing else.
    ///
    /// Tokens beyond their range are no plain request: a node must refuse them.
    pub fn is_plain(&self) -> bool {
        let is_in_range = match self {
            Self::Lock {
                verb: Verb::Acquire {
                    proposal, block, ..
                },
                ..
            } => last_of_block(*proposal, *block) <= FencingToken::MAX.get(),
            _ => true,
        };
        is_in_range && self.is_transactable()
    }

    /// Returns whether this is a plain request, if its tokens are in their range.
    pub(crate) fn is_transactable(&self) -> bool {
        let Self::Lock { verb, lock } = self else {
            return false;
        };
        let is_usual = match verb {
            Verb::Acquire { wish, .. } => wish.is_none(),
            Verb::Extend { write_back, .. } => write_back.is_none(),
            Verb::Release { .. } => true,
            Verb::Heal { .. } | Verb::Tombstone { .. } => false,
        };
        let keys = &lock.keys;
        is_usual && lock.mode == LockMode::Exclusive && !keys.is_several() && keys.slots().is_none()
    }

    /// Returns whether this must enter the line for its key if it is refused, for which a transaction is no use.
    pub(crate) const fn enters_line(&self) -> bool {
        matches!(
            self,
            Self::Lock {
                verb: Verb::Acquire {
                    line: Some(InLine { at_once: true, .. }),
                    ..
                },
                ..
            }
        )
    }

    /// Returns whether this looks at the line of callers that wait for its key.
    pub fn looks_at_line(&self) -> bool {
        let Self::Lock { verb, lock } = self else {
            return false;
        };
        let is_one = !lock.keys.is_several();
        match verb {
            // One that shares the key now may have waited for it alone.
            Verb::Release { .. } | Verb::Tombstone { .. } => is_one,
            Verb::Acquire { line, wish, .. } => {
                let is_plain = is_one && lock.mode == LockMode::Exclusive;
                let is_in_line = line.is_some() && wish.is_none();
                is_plain && is_in_line && lock.keys.slots().is_none()
            }
            Verb::Extend { .. } | Verb::Heal { .. } => false,
        }
    }

    /// Returns for how long this is worth repeating, should it fail: as long as the key that it releases may stay.
    ///
    /// `None` for anything but a release.
    pub(crate) const fn worth_repeating_for(&self) -> Option<Duration> {
        match self {
            Self::Lock {
                verb: Verb::Release { ttl } | Verb::Tombstone { ttl },
                ..
            }
            | Self::Job {
                verb: JobVerb::Record { ttl, .. } | JobVerb::Withdraw { ttl, .. },
                ..
            } => Some(*ttl),
            _ => None,
        }
    }

    /// Returns the request as it must be made again over another connection.
    ///
    /// On one connection a release cannot overtake the acquire before it; on another it can, so it tombstones
    /// the owner.
    pub(crate) fn over_another_connection(self) -> Self {
        match self {
            Self::Lock {
                verb: Verb::Release { ttl },
                lock,
            } => Self::Lock {
                verb: Verb::Tombstone { ttl },
                lock,
            },
            other => other,
        }
    }
}

/// The reply of a node to one request.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// It did what it was asked to.
    Done,
    /// It took the key, and its counter is now this much, less the tokens reserved after the first.
    Taken {
        /// The counter.
        counter: u64,
    },
    /// It carried out a transaction, and does not know whether it did what it was asked to.
    ///
    /// It may have taken the key; a link asks again, in a call that is no transaction.
    Unclear,
    /// Another owner has the key, and nothing was changed.
    Held {
        /// The longest time that the owner's key will stay; `None` if it never expires.
        remaining: Option<Duration>,
        /// The counter, if it was asked to take the key.
        counter: u64,
        /// The owner's label, if the node was asked to take the key and the owner has one.
        holder: Option<HolderLabel>,
        /// Set if the node was asked to take the key, and other owners share it or an owner waits for the sharers to
        /// leave.
        is_shared: bool,
    },
    /// Another owner has the key, and the caller waits in line for it.
    InLine {
        /// The longest time that the owner's key will stay; `None` if it never expires.
        remaining: Option<Duration>,
        /// The counter.
        counter: u64,
        /// The owner's label, if it has one.
        holder: Option<HolderLabel>,
        /// The number of callers that wait before this one.
        ahead: u32,
    },
    /// It let the key go, or no owner had it, and it gave the key to a caller that waited in line.
    Passed {
        /// `true` if the owner had it.
        was_held: bool,
        /// The number of that caller's client.
        client: u64,
        /// The round in which the caller asked last, as the node heard it.
        round: u64,
        /// The counter, less the tokens reserved after the first.
        counter: u64,
    },
    /// Other clients give the lock another number of slots, and nothing was changed.
    OtherSlots {
        /// Their number.
        count: u8,
        /// For how long it is remembered, unless they go on.
        remaining: Duration,
    },
    /// No owner has the key, so there was nothing to extend or release; or the run or the quarantine is not what the
    /// request said.
    Missing,
    /// The owner was tombstoned, and nothing was changed.
    Tombstoned,
    /// The namespace on this node has another policy, and nothing was changed.
    PolicyMismatch,
    /// The node's description of itself.
    ServerInfo(ServerInfo),
    /// The greatest of its counters.
    Greatest(u64),
    /// It took the lock for a claim, and its counter is now this much.
    Claimed {
        /// The counter.
        counter: u64,
        /// The newest line that it remembers of the series.
        last: Option<JobEntry>,
    },
    /// It did not take the lock for a claim, whether or not the lock is free.
    NoClaim(NoClaim),
    /// The node's memory of a job.
    Runs {
        /// The lines, the newest of each series first.
        entries: Vec<JobEntry>,
        /// After how long at most the lock is free: at once if it is zero; `None` if it never expires.
        free_in: Option<Duration>,
    },
}

impl Reply {
    /// Returns whether it did what it was asked to, where there is no counter to tell.
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done | Self::Passed { was_held: true, .. })
    }

    /// Returns how this answer counts in a round, from a node that votes.
    pub const fn outcome(&self) -> NodeOutcome {
        match self {
            Self::Done
            | Self::Passed { was_held: true, .. }
            | Self::ServerInfo(_)
            | Self::Greatest(_)
            | Self::Runs { .. } => NodeOutcome::Granted { counter: 0 },
            Self::Taken { counter } | Self::Claimed { counter, .. } => {
                NodeOutcome::Granted { counter: *counter }
            }
            Self::Held { remaining, .. } => NodeOutcome::Refused {
                remaining: *remaining,
            },
            Self::InLine { remaining, .. } => NodeOutcome::InLine {
                remaining: *remaining,
            },
            Self::OtherSlots { remaining, .. } => NodeOutcome::Refused {
                remaining: Some(*remaining),
            },
            Self::Missing | Self::Passed { .. } => NodeOutcome::Missing,
            Self::Unclear => NodeOutcome::Unknown,
            Self::Tombstoned | Self::PolicyMismatch | Self::NoClaim(_) => NodeOutcome::NotExecuted,
        }
    }
}

/// The answer of a node to one call.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a client must handle every part of it"
)]
pub struct Answer {
    /// The node's standing; `None` if it was only asked to let keys go, and did not look.
    pub standing: Option<Standing>,
    /// The result of each request; the error of one that ended with an error, and changed nothing.
    pub replies: Vec<Result<Reply, Arc<str>>>,
}

/// Returns the last of a block of tokens: what the counter becomes.
pub const fn last_of_block(proposal: u64, block: u32) -> u64 {
    let others = block.saturating_sub(1);
    proposal.saturating_add(others as u64)
}
