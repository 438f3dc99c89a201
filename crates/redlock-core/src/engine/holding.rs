use std::{sync::Arc, time::Duration};

use redlock_proto::{Instant, LeaseTerms, ParkedLease, RunRecord, TokenBlock, Word};
use tokio::sync::oneshot;

use super::{
    command::{Command, EngineHandle, NotWon},
    look::{Look, Looked},
    patience,
};
use crate::{
    ExtendError, Lease, LossReason, Mode, ReleaseError,
    clock::Clock,
    lease::{Kept, LeaseShared, Over, Subject},
};

/// An acquisition that has won.
#[derive(Debug)]
pub(crate) struct Won {
    pub(crate) holding: Holding,
    /// If a tick was claimed: the newest run before it.
    pub(crate) last: Option<RunRecord>,
}

/// The driver's promise that a lease is held; dropping it releases the lease.
#[derive(Debug)]
pub(crate) struct Holding {
    id: u64,
    lease: Lease,
    shared: Arc<LeaseShared>,
    engine: EngineHandle<Won>,
    tokens: TokenBlock,
    terms: LeaseTerms,
    look: Option<Look>,
    over: bool,
}

impl Holding {
    pub(super) fn new(
        id: u64,
        shared: Arc<LeaseShared>,
        engine: EngineHandle<Won>,
        tokens: TokenBlock,
        terms: LeaseTerms,
    ) -> Self {
        Self {
            id,
            lease: Lease::new(Arc::clone(&shared)),
            shared,
            engine,
            tokens,
            terms,
            look: None,
            over: false,
        }
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.shared.loss()
    }

    /// Releases `kept` when the lease is lost.
    pub(crate) fn keep(&self, kept: Arc<dyn Kept>) {
        self.shared.keep(kept);
    }

    /// Asks for an extension now; the future awaits its confirmation.
    pub(crate) fn extend(&self) -> impl Future<Output = Result<(), ExtendError>> + use<> {
        let (answer, answered) = oneshot::channel();
        self.engine.send(Command::Extend {
            lease: self.id,
            answer,
        });
        confirmed(answered, self.engine.patience())
    }

    /// Asks the nodes whether they have refused the key to a caller; [`looked`](Self::looked) returns the answer later.
    pub(crate) fn look(&mut self, clock: Clock) {
        let (look, answer) = Look::new(clock.now());
        self.look = Some(look);
        self.engine.send(Command::Look {
            lease: self.id,
            answer,
        });
    }

    /// Returns what came of the question to the nodes, once; `None` if there was none, or no answer yet.
    pub(crate) fn looked(&mut self) -> Option<Looked> {
        let looked = self.look.as_mut()?.outcome()?;
        self.look = None;
        Some(looked)
    }

    /// Returns whether a question to the nodes is under way, whose answer is lost if the lease is released now.
    pub(crate) fn has_asked(&self) -> bool {
        self.look.is_some()
    }

    /// Makes the lease shared, and asks for a round that tells the nodes; the future awaits its confirmation.
    ///
    /// Returns `None` if the lease was shared from the start.
    pub(crate) fn downgrade(
        &self,
    ) -> Option<impl Future<Output = Result<(), ExtendError>> + use<>> {
        if self.shared.was_shared_from_the_start() {
            return None;
        }
        self.shared.share();
        let (answer, answered) = oneshot::channel();
        self.engine.send(Command::Downgrade {
            lease: self.id,
            answer,
        });
        Some(confirmed(answered, self.engine.patience()))
    }

    /// Attempts once to win an exclusive lease beside this shared one, which stays as it is.
    ///
    /// Dropping the future leaves nothing behind.
    pub(crate) fn upgrade(&self) -> impl Future<Output = Result<Self, NotWon>> + use<> {
        let (engine, lease, terms) = (self.engine.clone(), self.id, self.terms);
        let subject = Subject {
            mode: Mode::Exclusive,
            place: None,
            ..self.shared.subject().clone()
        };
        async move {
            let (_, won) = engine.upgrade(lease, subject, terms).await;
            won.map(|won| won.holding)
        }
    }

    /// Ends the lease for its views; dropping the result notifies them.
    pub(crate) fn tell(&self, reason: LossReason) -> Over {
        self.shared.is_over(reason)
    }

    /// Sends the release now; the future awaits its confirmation.
    pub(crate) fn release(mut self) -> impl Future<Output = Result<(), ReleaseError>> + use<> {
        let (lost, limit) = (self.end(), self.engine.patience());
        let (answer, answered) = oneshot::channel();
        self.engine.send(Command::Release {
            lease: self.id,
            answer: Some(answer),
        });
        async move {
            let confirmed = patience::answer(answered, limit).await;
            match lost {
                Some(_) => Err(ReleaseError::lost()),
                None => confirmed.unwrap_or_else(|| Err(ReleaseError::lost())),
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

    /// Returns what the next holder in this process may have; `None` if the lease is lost or cannot be handed over.
    pub(crate) fn to_hand_over(&self) -> Option<ParkedLease> {
        let deadline = self.shared.deadline();
        let lease = ParkedLease::new(self.tokens, self.terms, deadline);
        lease.filter(|_| self.shared.loss().is_none())
    }

    /// Ends this holder's lease and keeps it for the next holder in this process.
    pub(crate) fn park(mut self, lease: ParkedLease) -> Parked {
        // First, so that whatever the driver tells this holder too late to be passed on, it tells the next one.
        self.engine.hand_overs().park(self.id);
        self.end();
        Parked {
            id: self.id,
            engine: self.engine.clone(),
            deadline: self.shared.deadline(),
            lease,
            look: self.look.take(),
            before: Arc::clone(&self.shared),
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

async fn confirmed(
    answered: oneshot::Receiver<Result<(), ExtendError>>,
    limit: Duration,
) -> Result<(), ExtendError> {
    let confirmed = patience::answer(answered, limit).await;
    confirmed.unwrap_or_else(|| Err(ExtendError::unconfirmed(Vec::new())))
}

/// A lease between two holders of this process; dropping it releases the lease.
#[derive(Debug)]
pub(crate) struct Parked {
    id: u64,
    engine: EngineHandle<Won>,
    lease: ParkedLease,
    /// Up to when it is valid; an extension may have been confirmed after `lease` was made.
    deadline: Instant,
    /// The lease of the previous holder; it has a loss, whichever holder the driver tells of it.
    before: Arc<LeaseShared>,
    look: Option<Look>,
    claimed: bool,
}

impl Parked {
    /// Returns the lease, for a caller that asks for it on these terms, if enough of it is left.
    pub(crate) fn take_over(
        mut self,
        subject: Subject,
        terms: LeaseTerms,
        clock: Clock,
    ) -> Option<Holding> {
        let was_lost = || self.before.was_lost();
        if was_lost() {
            return None;
        }
        let tokens = self.lease.take_over(&terms, clock.now())?;
        let engine = self.engine.clone();
        let next = (self.before).handed_over(subject, self.deadline, tokens.first());
        let shared = Arc::new(next);
        if engine.hand_overs().resume(self.id, Arc::clone(&shared)) {
            engine.send(Command::SeeHandOvers);
        }
        // If the driver knows of a loss already, no holder has lost the lease.
        if was_lost() {
            shared.end(LossReason::Released);
            return None;
        }
        self.claimed = true;
        let mut holding = Holding::new(self.id, shared, engine, tokens, terms);
        holding.look = self.look.take();
        Some(holding)
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

#[cfg(test)]
impl Holding {
    /// Returns a lease without a driver, what says how many commands were sent for it, and its clock.
    pub(crate) fn for_tests() -> (Self, Box<dyn Fn() -> usize + Send + Sync>, Clock) {
        let clock = tests::clock();
        let (holding, commands) = tests::held(clock);
        let commands = std::sync::Mutex::new(commands);
        let sent = move || commands.lock().map_or(0, |commands| commands.len());
        (holding, Box::new(sent), clock)
    }
}

#[cfg(test)]
mod tests {
    use redlock_proto::{Acquire, KeySet, Timing};
    use tokio::sync::mpsc::UnboundedReceiver;

    use super::*;
    use crate::{FencingToken, ResourceKey, meter::LockMeter};

    const TTL: Duration = Duration::from_secs(1);

    pub(super) fn clock() -> Clock {
        Clock::Tokio {
            origin: tokio::time::Instant::now(),
        }
    }

    fn subject() -> Subject {
        let key: ResourceKey = "key".parse().unwrap();
        Subject {
            keys: key.into(),
            mode: Mode::Exclusive,
            class: None,
            timing: Timing::new(TTL, 0.01, TTL / 10).unwrap(),
            meter: LockMeter::none(),
            place: None,
        }
    }

    fn terms() -> LeaseTerms {
        LeaseTerms::of(&Acquire {
            mode: Mode::Exclusive.into(),
            keys: KeySet::from("key"),
            timing: subject().timing,
            renew: true,
            max_hold: None,
            tokens: 3,
            wait_until: Instant::ORIGIN,
            quorum_wait: None,
            label: None,
        })
    }

    pub(super) fn held(clock: Clock) -> (Holding, UnboundedReceiver<Command<Won>>) {
        let (engine, commands) = EngineHandle::new(Duration::ZERO);
        let token = FencingToken::new(1).unwrap();
        let deadline = clock.now() + TTL;
        let shared = LeaseShared::new(0, subject(), clock, deadline, None, token);
        let tokens = TokenBlock::new(token.get(), 3).unwrap();
        let holding = Holding::new(7, Arc::new(shared), engine, tokens, terms());
        (holding, commands)
    }

    fn park(holding: Holding) -> Parked {
        let lease = holding.to_hand_over().expect("it is valid");
        holding.park(lease)
    }

    // Shows: T1.11.
    #[tokio::test(start_paused = true)]
    async fn a_hand_over_wakes_the_driver_only_if_it_has_seen_the_lease_parked() {
        let clock = clock();
        let (holding, mut commands) = held(clock);
        let parked = park(holding);
        let holding = parked.take_over(subject(), terms(), clock).unwrap();
        assert!(commands.is_empty());

        let parked = park(holding);
        assert_eq!(parked.engine.hand_overs().take().len(), 1);
        let holding = parked.take_over(subject(), terms(), clock).unwrap();
        let command = commands.try_recv();
        assert!(matches!(command, Ok(Command::SeeHandOvers)), "{command:?}");
        drop(holding);
    }

    // Shows: T1.11.
    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_lost_at_the_moment_of_its_hand_over_is_nobodys() {
        let clock = clock();
        let (holding, mut commands) = held(clock);
        let lease = holding.to_hand_over().unwrap();
        holding.shared.end(LossReason::Revoked);
        let parked = holding.park(lease);
        assert!(parked.take_over(subject(), terms(), clock).is_none());
        let command = commands.try_recv();
        assert!(
            matches!(command, Ok(Command::Release { lease: 7, .. })),
            "{command:?}"
        );
    }

    // Shows: T1.11.
    #[tokio::test(start_paused = true)]
    async fn an_extension_that_is_confirmed_at_the_moment_of_a_hand_over_is_the_next_holders() {
        let clock = clock();
        let (holding, _commands) = held(clock);
        let lease = holding.to_hand_over().unwrap();
        holding.shared.extend(clock.now() + 3 * TTL);
        let parked = holding.park(lease);
        let next = parked.take_over(subject(), terms(), clock).unwrap();
        assert_eq!(next.lease().remaining(), 3 * TTL);
    }
}
