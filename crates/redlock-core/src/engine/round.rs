use std::sync::Arc;

use redlock_proto::{Attempt, Extension, Instant, Outcome, OwnerId, Release, Reply};
use tokio::sync::oneshot;

use super::{
    link::{Done, OpError},
    timers::TimerKey,
};
use crate::{ExtendError, NodeAnswer, ReleaseError};

/// One request to every node that is concerned, until each has had its outcome.
///
/// A round outlives its decision: what comes late still tells who may have the key.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) kind: RoundKind,
    pub(super) started: Instant,
    /// The requests whose outcome is still to come.
    pub(super) open: usize,
    /// The time limit, while the round is undecided.
    pub(super) limit: Option<TimerKey>,
    answers: Vec<Option<Result<Reply, OpError>>>,
}

#[derive(Debug)]
pub(super) enum RoundKind {
    Attempt {
        acquisition: u64,
        owner: OwnerId,
        attempt: Attempt,
    },
    /// An attempt that was decided; its late outcomes concern the lease, if it became one.
    Decided { lease: Option<u64> },
    Extension {
        lease: u64,
        extension: Extension,
        answer: Option<oneshot::Sender<Result<(), ExtendError>>>,
    },
    Release {
        release: Release,
        answer: Option<oneshot::Sender<Result<(), ReleaseError>>>,
        ends: Instant,
    },
}

impl Round {
    pub(super) fn new(kind: RoundKind, started: Instant, nodes: usize) -> Self {
        Self {
            kind,
            started,
            open: 0,
            limit: None,
            answers: (0..nodes).map(|_| None).collect(),
        }
    }

    /// Notes an outcome and says how the protocol counts it.
    pub(super) fn note(&mut self, done: Done) -> Outcome {
        self.open -= 1;
        let outcome = match &done.result {
            Ok(reply) => reply.outcome(),
            Err(OpError {
                may_have_run: true, ..
            }) => Outcome::Unknown,
            Err(OpError {
                may_have_run: false,
                ..
            }) => Outcome::NotExecuted,
        };
        self.answers[done.node] = Some(done.result);
        outcome
    }

    /// What a node said, for an error; `None` if it has said nothing.
    pub(super) fn answer(&self, node: usize) -> Option<NodeAnswer> {
        Some(match self.answers.get(node)?.as_ref()? {
            Ok(Reply::Done) => match self.kind {
                RoundKind::Release { .. } => NodeAnswer::Released,
                _ => NodeAnswer::Granted,
            },
            Ok(Reply::Held { remaining }) => NodeAnswer::Held {
                remaining: *remaining,
            },
            Ok(Reply::Missing) => NodeAnswer::Missing,
            Err(error) => {
                let reason = Arc::clone(&error.reason);
                match error.may_have_run {
                    true => NodeAnswer::Unknown { reason },
                    false => NodeAnswer::NotExecuted { reason },
                }
            }
        })
    }
}
