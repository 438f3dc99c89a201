//! What the driver tells those who asked, and the log.

use redlock_proto::{JobState, NodeAnswer, NotExtended, NotReleased, Notice};
use tokio::sync::oneshot;

use super::{command::JobAnswer, driver::Driver};
use crate::{ExtendError, NodeReport, ReleaseError};

/// Who asked for something.
#[derive(Debug)]
pub(super) enum Asked {
    Extend {
        lease: u64,
        answer: oneshot::Sender<Result<(), ExtendError>>,
    },
    Release {
        answer: oneshot::Sender<Result<(), ReleaseError>>,
    },
    Bless {
        answer: oneshot::Sender<Vec<NodeAnswer>>,
    },
    ReadJob {
        answer: oneshot::Sender<JobAnswer>,
    },
}

impl Driver {
    pub(super) fn extension_over(&mut self, ask: u64, result: Result<(), NotExtended>) {
        let Some(Asked::Extend { lease, answer }) = self.asked.remove(&ask) else {
            return;
        };
        // Somebody may have seen the old deadline pass before the confirmation was processed.
        let shared = self.leases.get(&lease);
        let live = shared.is_some_and(|shared| shared.loss().is_none());
        // Whoever asked may have stopped waiting.
        drop(answer.send(match result {
            Ok(()) if live => Ok(()),
            Ok(()) => Err(ExtendError::lost(Vec::new())),
            Err(NotExtended {
                lost: true,
                answers,
            }) => Err(ExtendError::lost(self.reports(answers))),
            Err(NotExtended { answers, .. }) => {
                Err(ExtendError::unconfirmed(self.reports(answers)))
            }
        }));
    }

    pub(super) fn release_over(&mut self, ask: u64, result: Result<(), NotReleased>) {
        let Some(Asked::Release { answer }) = self.asked.remove(&ask) else {
            return;
        };
        // Whoever asked may have stopped waiting.
        drop(answer.send(result.map_err(|not_released| {
            let NotReleased {
                ends_within,
                answers,
            } = not_released;
            ReleaseError::unconfirmed(self.reports(answers), ends_within)
        })));
    }

    pub(super) fn job_read(&mut self, ask: u64, state: Option<JobState>, answers: Vec<NodeAnswer>) {
        if let Some(Asked::ReadJob { answer }) = self.asked.remove(&ask) {
            // Whoever asked may have stopped waiting.
            drop(answer.send((state, answers)));
        }
    }

    /// Names the nodes that gave these answers.
    pub(super) fn reports(&self, answers: Vec<NodeAnswer>) -> Vec<NodeReport> {
        NodeReport::of_all(&self.names, answers)
    }

    pub(super) fn notice(&self, notice: &Notice) {
        match notice {
            Notice::Votes { node } => {
                tracing::info!(node = %self.names[*node], "node votes");
            }
            Notice::DoesNotVote { node, reason } => {
                tracing::warn!(node = %self.names[*node], %reason, "node does not vote");
            }
            Notice::FencingDegraded { node } => tracing::warn!(
                node = %self.names[*node],
                "too few nodes know the fencing counters, as on a first start; the wall clock stands in"
            ),
            Notice::ExtensionFailed => {
                tracing::debug!("no majority confirmed an extension; the lease keeps its deadline");
            }
            _ => {}
        }
    }
}
