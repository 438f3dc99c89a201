//! Who waits for an acquisition or a claim, and how to tell them.

use redlock_proto::{Acquire, NotClaimed, RunRecord};
use tokio::sync::oneshot;

use super::{
    Holding,
    command::{AcquireAnswer, ClaimAnswer, Claimed},
    holding::Terms,
};
use crate::{AcquireError, NodeReport, lease::Subject};

pub(super) struct Waiting {
    pub(super) subject: Subject,
    pub(super) terms: Terms,
    pub(super) answer: Answer,
}

/// Whoever asked may have stopped waiting by the time they are told; an answer that nobody takes drops what it
/// carries.
pub(super) enum Answer {
    Acquire(oneshot::Sender<AcquireAnswer>),
    Claim(oneshot::Sender<ClaimAnswer>),
}

impl Waiting {
    pub(super) fn new(subject: Subject, acquire: &Acquire, answer: Answer) -> Self {
        let terms = Terms::of(acquire);
        Self {
            subject,
            terms,
            answer,
        }
    }
}

impl Answer {
    pub(super) fn won(self, holding: Holding, last: Option<RunRecord>) {
        match self {
            Self::Acquire(answer) => drop(answer.send(Ok(holding))),
            Self::Claim(answer) => drop(answer.send(Ok(Claimed::Won(holding, last)))),
        }
    }

    pub(super) fn not_claimed(self, why: NotClaimed, reports: Vec<NodeReport>) {
        if let Self::Claim(answer) = self {
            drop(answer.send(Ok(Claimed::Not(why, reports))));
        }
    }

    pub(super) fn failed(self, error: AcquireError) {
        match self {
            Self::Acquire(answer) => drop(answer.send(Err(error))),
            Self::Claim(answer) => drop(answer.send(Err(error))),
        }
    }
}
