//! The instructions of a client to its driver.

use std::{collections::VecDeque, time::Duration};

use super::{Ask, JobRecord, NotClaimed, Notice};
use crate::{Failure, Instant, Loss, NodeAnswer, Request, RunRecord, TokenBlock};

/// An instruction to the driver.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every effect")]
pub enum Effect {
    /// Send a request to a node, and say what became of it under this number.
    Send {
        /// The node, from 0.
        node: usize,
        /// The number.
        round: u64,
        /// The request.
        request: Request,
        /// The connection to the node that it is meant for, by its number from 1.
        ///
        /// Over any other it must be sent as `Request::over_another_connection` makes it: what it follows may
        /// still be on its way.
        connection: u64,
    },
    /// Hear what every node publishes for this client from now on, and pass it to [`on_gift`](super::Client::on_gift).
    Listen {
        /// The number under which nodes know the client; `None` if nothing is to be heard any longer.
        number: Option<u64>,
    },
    /// An acquisition has won a lease, which has the same number; a claim has won its tick as well, which was started
    /// from now on.
    Acquired {
        /// The acquisition or the claim, and from now on the lease.
        id: u64,
        /// The time up to which it is valid.
        deadline: Instant,
        /// The time at which it ends however often it is extended, if it does.
        ends: Option<Instant>,
        /// Its fencing tokens; a claim has one.
        tokens: TokenBlock,
        /// Of a claim: the newest run before it, as far as the nodes that voted remember.
        last: Option<RunRecord>,
    },
    /// A claim has not won its tick, and there is no use in another.
    NotClaimed {
        /// The claim.
        id: u64,
        /// The reason.
        why: NotClaimed,
        /// The answer of each node.
        answers: Vec<NodeAnswer>,
    },
    /// The nodes' memory of a job was read, as it was asked for.
    JobRead {
        /// The caller that asked.
        ask: Ask,
        /// The record that a majority agrees on; `None` if too few nodes answered.
        record: Option<JobRecord>,
        /// The answer of each node.
        answers: Vec<NodeAnswer>,
    },
    /// An acquisition or a claim has failed for good.
    NotAcquired {
        /// The acquisition.
        id: u64,
        /// The reason; `None` if the client is closed.
        failure: Option<Failure>,
        /// The answer of each node.
        answers: Vec<NodeAnswer>,
    },
    /// A lease is valid for longer.
    Extended {
        /// The lease.
        lease: u64,
        /// The time up to which it is valid now.
        deadline: Instant,
    },
    /// A lease can no longer be relied on.
    Lost {
        /// The lease.
        lease: u64,
        /// The reason.
        loss: Loss,
    },
    /// An extension that was asked for is over.
    ExtensionOver {
        /// The caller that asked.
        ask: Ask,
        /// The majority's confirmation, or the reason for which there is none.
        result: Result<(), NotExtended>,
    },
    /// A release that was asked for is over.
    ReleaseOver {
        /// The caller that asked.
        ask: Ask,
        /// The majority's confirmation, or the reason for which there is none.
        result: Result<(), NotReleased>,
    },
    /// The blessing that was asked for is over.
    Blessed {
        /// The caller that asked.
        ask: Ask,
        /// The state of each node now.
        answers: Vec<NodeAnswer>,
    },
    /// Something an operator should know.
    Notice(Notice),
}

/// An extension that moved no deadline.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must handle every part of it"
)]
pub struct NotExtended {
    /// `true` if the lease is lost; otherwise it keeps its deadline.
    pub lost: bool,
    /// The answer of each node; empty if none was asked.
    pub answers: Vec<NodeAnswer>,
}

/// A release that no majority confirmed in time.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must handle every part of it"
)]
pub struct NotReleased {
    /// The time within which the key ends on the nodes that did not confirm.
    pub ends_within: Duration,
    /// The answer of each node.
    pub answers: Vec<NodeAnswer>,
}

/// What the driver is to do, in order.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    effects: VecDeque<Effect>,
}

impl Outbox {
    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// Tells an operator something.
    pub(super) fn notice(&mut self, notice: Notice) {
        self.push(Effect::Notice(notice));
    }

    /// Takes the first effect.
    pub(super) fn pop(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }
}
