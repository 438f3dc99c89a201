//! Acquisitions: attempts, and the delays between them, until one wins or the wait ends.

use redlock_proto::{
    Attempt, AttemptVerdict, Failure, FailureKind, Grant, Next, OwnerId, Verb, Votes,
};
use tokio::sync::oneshot;

use super::{
    command::{AcquireAnswer, AcquireRequest},
    driver::{Driver, Timer},
    round::RoundKind,
    tasks::{random_bits, random_owner},
    timers::TimerKey,
};
use crate::{AcquireError, AcquireErrorKind, NodeReport};

/// One caller's acquisition.
#[derive(Debug)]
pub(super) struct Acquisition {
    request: AcquireRequest,
    answer: oneshot::Sender<AcquireAnswer>,
    attempts: u32,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Attempting { round: u64 },
    Pausing { timer: TimerKey },
}

impl Driver {
    pub(super) fn acquire(
        &mut self,
        id: u64,
        request: AcquireRequest,
        answer: oneshot::Sender<AcquireAnswer>,
    ) {
        let round = self.start_attempt_round(id, &request);
        let phase = Phase::Attempting { round };
        self.acquisitions.insert(
            id,
            Acquisition {
                request,
                answer,
                attempts: 1,
                phase,
            },
        );
    }

    /// The delay after a failed attempt is over.
    pub(super) fn start_attempt(&mut self, id: u64) {
        let Some(mut acquisition) = self.acquisitions.remove(&id) else {
            return;
        };
        let round = self.start_attempt_round(id, &acquisition.request);
        acquisition.phase = Phase::Attempting { round };
        acquisition.attempts += 1;
        self.acquisitions.insert(id, acquisition);
    }

    /// The caller has gone away.
    pub(super) fn abandon(&mut self, id: u64) {
        let now = self.now();
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        match acquisition.phase {
            Phase::Pausing { timer } => {
                self.timers.cancel(timer);
                self.acquisitions.remove(&id);
            }
            Phase::Attempting { round } => {
                if let Some(entry) = self.rounds.get_mut(&round)
                    && let RoundKind::Attempt { attempt, .. } = &mut entry.kind
                    && let Some(verdict) = attempt.on_abandoned(now)
                {
                    self.attempted(round, verdict);
                }
            }
        }
    }

    /// Ends every acquisition, because the client is being closed.
    pub(super) fn end_acquisitions(&mut self) {
        let mut ids: Vec<u64> = self.acquisitions.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.abandon(id);
        }
    }

    /// An attempt was decided.
    pub(super) fn attempted(&mut self, round: u64, verdict: AttemptVerdict) {
        self.decided(round);
        let Some(entry) = self.rounds.get_mut(&round) else {
            return;
        };
        let decided = RoundKind::Decided { lease: None };
        let kind = std::mem::replace(&mut entry.kind, decided);
        let RoundKind::Attempt {
            acquisition: id,
            owner,
            attempt,
        } = kind
        else {
            return;
        };
        let Some(acquisition) = self.acquisitions.remove(&id) else {
            return;
        };
        match verdict {
            AttemptVerdict::Granted(grant) => {
                entry.kind = RoundKind::Decided { lease: Some(id) };
                self.won(id, acquisition, owner, &grant, attempt.votes());
            }
            AttemptVerdict::Failed(failure) => {
                let AcquireRequest {
                    encoded, timing, ..
                } = &acquisition.request;
                self.send_release(&failure.give_back, encoded, owner, *timing, None);
                self.failed(id, acquisition, &failure, round);
            }
        }
    }

    fn start_attempt_round(&mut self, id: u64, request: &AcquireRequest) -> u64 {
        let owner = OwnerId::from_random(random_owner());
        // Read before the first byte is sent: the deadline counts from here.
        let now = self.now();
        let limit = self.limit_within(&request.timing);
        let attempt = Attempt::start(self.config.quorum, request.timing, now);
        let round = self.start_round(
            RoundKind::Attempt {
                acquisition: id,
                owner,
                attempt,
            },
            now,
            limit,
        );
        let verb = Verb::Acquire {
            ttl: request.timing.ttl(),
        };
        for node in 0..self.config.quorum.nodes() {
            self.send(node, round, verb, &request.encoded, owner, None);
        }
        round
    }

    fn won(
        &mut self,
        id: u64,
        acquisition: Acquisition,
        owner: OwnerId,
        grant: &Grant,
        votes: &Votes,
    ) {
        let Acquisition {
            request, answer, ..
        } = acquisition;
        match self.hold(id, request, owner, grant, votes) {
            // A caller that has gone away drops the answer, and with it the holding, which releases
            // the lease.
            Some(holding) => drop(answer.send(Ok(holding))),
            None => self.release(id, None),
        }
    }

    fn failed(&mut self, id: u64, mut acquisition: Acquisition, failure: &Failure, round: u64) {
        let now = self.now();
        let wait_until = acquisition.request.wait_until;
        let (attempts, random) = (acquisition.attempts, random_bits());
        let next = match self.closing {
            true => Next::GiveUp,
            false => self
                .config
                .retry
                .next(failure, attempts, wait_until, now, random),
        };
        match next {
            Next::RetryAt(at) => {
                let timer = self.timers.set(at, Timer::Retry(id));
                acquisition.phase = Phase::Pausing { timer };
                self.acquisitions.insert(id, acquisition);
            }
            // The caller may have gone away.
            Next::GiveUp => {
                let error = self.error(failure, self.reports(round));
                drop(acquisition.answer.send(Err(error)));
            }
        }
    }

    fn error(&self, failure: &Failure, reports: Vec<NodeReport>) -> AcquireError {
        let kind = match failure.kind {
            _ if self.closing => return AcquireError::closed(),
            FailureKind::Contended => AcquireErrorKind::Contended,
            FailureKind::Expired => AcquireErrorKind::Expired,
            FailureKind::NoQuorum => AcquireErrorKind::NoQuorum,
            // Nobody is there to read it.
            _ => return AcquireError::closed(),
        };
        let now = self.now();
        let remaining = failure.majority_free_at.map(|at| at.saturating_since(now));
        AcquireError::nodes(kind, self.config.quorum.majority(), remaining, reports)
    }
}
