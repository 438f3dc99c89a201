//! The driver's answers to callers and to the log.

use std::sync::Arc;

use super::{
    asked::{Asked, Waiting},
    driver::Driver,
    holding::{Holding, Won},
};
use crate::{AcquireError, ExtendError, NodeReport, ReleaseError, lease::LeaseShared};
use redlock_proto::{
    Confirmed, Failure, Instant, JobState, NodeAnswer, NotExtended, NotReleased, RunRecord,
    TokenBlock,
};

impl Driver {
    /// Hands the lease that an acquisition or a claim has won to its caller.
    pub(super) fn acquired(
        &mut self,
        id: u64,
        deadline: Instant,
        ends: Option<Instant>,
        tokens: TokenBlock,
        last: Option<RunRecord>,
    ) {
        let (Some(waiting), Some(engine)) = (self.waiting.remove(id), self.handles.upgrade())
        else {
            // The caller, or the last handle, is gone.
            return self.client.release(id, None, self.now());
        };
        let Waiting {
            subject,
            terms,
            attempts,
            answer,
            ..
        } = waiting;
        let shared = Arc::new(LeaseShared::new(
            engine.client(),
            subject,
            self.clock,
            deadline,
            ends,
            tokens.first(),
        ));
        self.leases.insert(id, Arc::clone(&shared));
        // A caller that has gone away drops the answer, and with it the holding, which releases
        // the lease.
        let holding = Holding::new(id, shared, engine, tokens, terms);
        drop(answer.send((attempts, Ok(Won { holding, last }))));
    }

    /// Returns an error with a line per node.
    pub(super) fn acquire_error(
        &self,
        failure: Option<Failure>,
        answers: Vec<NodeAnswer>,
    ) -> AcquireError {
        match failure {
            Some(failure) if !self.closing => {
                let now = self.clock.now();
                AcquireError::failed(&failure, self.majority, self.reports(answers), now)
            }
            _ => AcquireError::closed(),
        }
    }

    pub(super) fn extension_over(&mut self, ask: u64, result: Result<Confirmed, NotExtended>) {
        let (lease, answer) = match self.asked.remove(ask) {
            Some(Asked::Extend { lease, answer }) => (lease, answer),
            Some(Asked::Look { answer }) => {
                let is_undisputed = result.is_ok_and(|confirmed| confirmed.is_undisputed);
                // The caller may have stopped waiting.
                let _ = answer.send(is_undisputed);
                return;
            }
            _ => return,
        };
        // A view may have seen the old deadline pass before the driver processed the confirmation.
        let shared = self.leases.get(lease);
        let live = shared.is_some_and(|shared| shared.loss().is_none());
        // The caller may have stopped waiting.
        drop(answer.send(match result {
            Ok(_) if live => Ok(()),
            Ok(_) => Err(ExtendError::lost(Vec::new())),
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
        let Some(Asked::Release { answer }) = self.asked.remove(ask) else {
            return;
        };
        // The caller may have stopped waiting.
        drop(answer.send(result.map_err(|not_released| {
            let NotReleased {
                ends_within,
                answers,
            } = not_released;
            ReleaseError::unconfirmed(self.reports(answers), ends_within)
        })));
    }

    pub(super) fn job_read(&mut self, ask: u64, state: Option<JobState>, answers: Vec<NodeAnswer>) {
        if let Some(Asked::ReadJob { answer }) = self.asked.remove(ask) {
            // The caller may have stopped waiting.
            drop(answer.send((state, answers)));
        }
    }

    /// Names the nodes that gave these answers.
    pub(super) fn reports(&self, answers: Vec<NodeAnswer>) -> Vec<NodeReport> {
        NodeReport::of_all(&self.names, answers)
    }
}
