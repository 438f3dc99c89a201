//! What a client tells its driver.

use std::time::Duration;

use super::{Ask, JobState, NotClaimed, Notice};
use crate::{Failure, Instant, Loss, NodeAnswer, Request, RunRecord, TokenBlock};

/// What a driver must do.
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
        /// Which of the connections to the node it is meant for, by their number, from 1.
        ///
        /// Over any other it must be sent as [`Request::over_another_connection`] makes it: what it follows may
        /// still be on its way.
        connection: u64,
    },
    /// An acquisition has won a lease, which goes by the same number; a claim its tick as well, which was started
    /// from now on.
    Acquired {
        /// The acquisition or the claim, and from now on the lease.
        id: u64,
        /// Up to when it is valid.
        deadline: Instant,
        /// When it ends however often it is extended, if it does.
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
        /// Why.
        why: NotClaimed,
        /// What each node said.
        answers: Vec<NodeAnswer>,
    },
    /// What nodes remember of a job, as it was asked for.
    JobRead {
        /// Who asked.
        ask: Ask,
        /// What it comes to; `None` if too few nodes said.
        state: Option<JobState>,
        /// What each node said.
        answers: Vec<NodeAnswer>,
    },
    /// An acquisition or a claim has failed for good.
    NotAcquired {
        /// The acquisition.
        id: u64,
        /// Why; `None` if the client is closed.
        failure: Option<Failure>,
        /// What each node said.
        answers: Vec<NodeAnswer>,
    },
    /// A lease is valid for longer.
    Extended {
        /// The lease.
        lease: u64,
        /// Up to when.
        deadline: Instant,
    },
    /// A lease can no longer be relied on.
    Lost {
        /// The lease.
        lease: u64,
        /// Why.
        loss: Loss,
    },
    /// An extension that was asked for is over.
    ExtensionOver {
        /// Who asked.
        ask: Ask,
        /// Whether a majority confirmed it.
        result: Result<(), NotExtended>,
    },
    /// A release that was asked for is over.
    ReleaseOver {
        /// Who asked.
        ask: Ask,
        /// Whether a majority confirmed it.
        result: Result<(), NotReleased>,
    },
    /// The blessing that was asked for is over.
    Blessed {
        /// Who asked.
        ask: Ask,
        /// Where each node stands now.
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
    /// Whether the lease is lost; else it keeps its deadline.
    pub lost: bool,
    /// What each node said; empty if none was asked.
    pub answers: Vec<NodeAnswer>,
}

/// A release that no majority confirmed in time.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must handle every part of it"
)]
pub struct NotReleased {
    /// Within which time the key ends on the nodes that did not confirm.
    pub ends_within: Duration,
    /// What each node said.
    pub answers: Vec<NodeAnswer>,
}
