use std::{sync::Arc, time::Duration};

use redlock_proto::{Acquire, FencingToken, Instant, Timing, TokenBlock, Word};
use tokio::sync::oneshot;

use super::command::{Command, EngineHandle};
use crate::{
    ExtendError, Lease, LossReason, ReleaseError,
    clock::Clock,
    lease::{LeaseShared, Subject},
    queue::Turn,
};

/// The driver's promise that a lease is held; dropping it releases the lease.
#[derive(Debug)]
pub(crate) struct Holding {
    id: u64,
    lease: Lease,
    shared: Arc<LeaseShared>,
    engine: EngineHandle,
    tokens: TokenBlock,
    terms: Terms,
    over: bool,
}

/// What a lease was asked for with; only a caller who asks for the same can take it over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Terms {
    timing: Timing,
    renew: bool,
    max_hold: Option<Duration>,
}

impl Terms {
    pub(crate) fn of(acquire: &Acquire) -> Self {
        Self {
            timing: acquire.timing,
            renew: acquire.renew,
            max_hold: acquire.max_hold,
        }
    }
}

impl Holding {
    pub(super) fn new(
        id: u64,
        shared: Arc<LeaseShared>,
        engine: EngineHandle,
        tokens: TokenBlock,
        terms: Terms,
    ) -> Self {
        Self {
            id,
            lease: Lease::new(Arc::clone(&shared)),
            shared,
            engine,
            tokens,
            terms,
            over: false,
        }
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(crate) fn token(&self) -> FencingToken {
        self.tokens.first()
    }

    /// Leaves the holder's turn with the lease: a loss passes it on, however busy or idle the holder is.
    pub(crate) fn keep_turn(&self, turn: Turn) {
        self.shared.keep_turn(turn);
    }

    /// The holder's turn; `None` if the lease was lost.
    pub(crate) fn take_turn(&self) -> Option<Turn> {
        self.shared.take_turn()
    }

    pub(crate) async fn extend(&self) -> Result<(), ExtendError> {
        let (answer, answered) = oneshot::channel();
        self.engine.send(Command::Extend {
            lease: self.id,
            answer,
        });
        answered
            .await
            .unwrap_or_else(|_| Err(ExtendError::unconfirmed(Vec::new())))
    }

    /// Sends the release now; the future awaits its confirmation.
    pub(crate) fn release(mut self) -> impl Future<Output = Result<(), ReleaseError>> + use<> {
        let lost = self.end();
        let (answer, answered) = oneshot::channel();
        self.engine.send(Command::Release {
            lease: self.id,
            answer: Some(answer),
        });
        async move {
            let confirmed = answered.await;
            match lost {
                Some(_) => Err(ReleaseError::lost()),
                None => confirmed.unwrap_or_else(|_| Err(ReleaseError::lost())),
            }
        }
    }

    /// Says what came of the run under a lease that was claimed, ahead of its release.
    pub(crate) fn finish(&self, outcome: Word, took: Duration) {
        self.engine.send(Command::Finish {
            lease: self.id,
            outcome,
            took,
        });
    }

    /// Ends the lease on this side only.
    pub(crate) fn leave(mut self) {
        self.end();
        self.engine.send(Command::Leave { lease: self.id });
    }

    /// The tokens for the next holder in this process; `None` if the lease cannot be handed over: it is lost, has
    /// no token left, or may be held for a limited time only.
    pub(crate) fn tokens_to_hand_over(&self) -> Option<TokenBlock> {
        let unlimited = self.terms.max_hold.is_none() && self.shared.loss().is_none();
        unlimited.then(|| self.tokens.hand_over())?
    }

    /// Ends this holder's lease and keeps it for the next holder in this process, with these tokens.
    pub(crate) fn park(mut self, tokens: TokenBlock) -> Parked {
        let deadline = self.shared.deadline();
        self.end();
        self.engine.send(Command::Park { lease: self.id });
        Parked {
            id: self.id,
            engine: self.engine.clone(),
            tokens,
            terms: self.terms,
            deadline,
            claimed: false,
        }
    }

    /// Views learn of the end before the first node does; returns the reason if there was one before.
    fn end(&mut self) -> Option<LossReason> {
        self.over = true;
        let lost = self.shared.loss();
        self.shared.end(LossReason::Released);
        lost
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if !self.over {
            self.end();
            self.engine.send(Command::Release {
                lease: self.id,
                answer: None,
            });
        }
    }
}

/// A lease between two holders of this process; dropping it releases the lease.
///
/// Nothing extends it meanwhile, so that a caller that is never polled does not keep others out for longer than
/// its time to live.
#[derive(Debug)]
pub(crate) struct Parked {
    id: u64,
    engine: EngineHandle,
    tokens: TokenBlock,
    terms: Terms,
    deadline: Instant,
    claimed: bool,
}

impl Parked {
    /// The lease, for a caller who asks for it on these terms, if enough of it is left.
    pub(crate) fn claim(mut self, subject: Subject, terms: Terms, clock: Clock) -> Option<Holding> {
        if terms != self.terms || !terms.timing.may_hand_out(self.deadline, clock.now()) {
            return None;
        }
        self.claimed = true;
        let token = self.tokens.first();
        let engine = self.engine.clone();
        let client = engine.client();
        let shared = LeaseShared::new(client, subject, clock, self.deadline, None, token);
        let shared = Arc::new(shared);
        engine.send(Command::Resume {
            lease: self.id,
            shared: Arc::clone(&shared),
        });
        Some(Holding::new(self.id, shared, engine, self.tokens, terms))
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        if !self.claimed {
            self.engine.send(Command::Release {
                lease: self.id,
                answer: None,
            });
        }
    }
}
