//! The leases that this process holds, and those between two of its holders.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use redlock_proto::{Instant, Note, ParkedLease, TokenBlock, Word};
use tracing::Span;

use super::{DriverCommand, NotWon, handle::EngineHandle};
use crate::{
    ExtendError, Lease, LossReason, Mode, ReleaseError,
    lease::{Kept, LeaseRequest, Telling},
    queue::Turn,
};

/// A lease that the driver keeps for its guards; it is released with the last of them, or when it is dropped.
#[derive(Debug)]
pub(crate) struct HeldLease {
    /// Its number at the driver.
    id: u64,
    lease: Lease,
    engine: EngineHandle,
    tokens: TokenBlock,
    /// How many guards there are.
    guards: AtomicUsize,
    stage: Mutex<HeldStage>,
    /// The holder's turn in the local queue, until the guard takes it or the lease is lost; a reader has none.
    turn: Mutex<Option<Turn<Parked>>>,
    /// Whether the key stays on the nodes when it is given up.
    stays: AtomicBool,
    /// Its span, which ends with it; in a box, because most programs have no use for spans.
    span: OnceLock<Box<Span>>,
    /// What ends it, and must know the lease that takes its place; in a box, as few leases have one.
    scope: OnceLock<Box<Weak<dyn Scoped>>>,
}

/// How far a held lease has come.
#[derive(Debug, Default)]
struct HeldStage {
    /// Set when its holders give it up: nothing more is asked of the driver for it than its end.
    is_given_up: bool,
    /// Set when the driver hears of that, or the lease waits for its next holder.
    is_over: bool,
    /// Set when the next holder has it.
    is_taken_over: bool,
}

/// What ends the leases that were acquired in it.
pub(crate) trait Scoped: Send + Sync {
    /// Counts a lease as its own; a lease that comes when it has ended is over.
    fn add_held(&self, held: &Arc<HeldLease>);
}

impl HeldLease {
    pub(super) fn new(id: u64, lease: Lease, engine: EngineHandle, tokens: TokenBlock) -> Self {
        Self {
            id,
            lease,
            engine,
            tokens,
            guards: AtomicUsize::new(1),
            stage: Mutex::default(),
            turn: Mutex::default(),
            stays: AtomicBool::new(false),
            span: OnceLock::new(),
            scope: OnceLock::new(),
        }
    }

    /// Keeps the turn of the holder until the lease ends; the first guard of the lease is made after that.
    pub(crate) fn with_turn(mut self, turn: Turn<Parked>) -> Arc<Self> {
        self.turn = Mutex::new(Some(turn));
        let held = Arc::new(self);
        // A loss passes the turn on, however busy or idle the holder is.
        let kept: Weak<Self> = Arc::downgrade(&held);
        held.lease.keep(kept);
        held
    }

    pub(crate) const fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Counts another guard; returns whether there may be one, because the last is not gone.
    pub(crate) fn has_another(&self) -> bool {
        let guards = &self.guards;
        let another = |guards: usize| (guards > 0 && guards & ONLY == 0).then_some(guards + 1);
        let counted = guards.fetch_update(Ordering::AcqRel, Ordering::Acquire, another);
        counted.is_ok()
    }

    /// Counts a guard that is gone; returns whether it was the last.
    pub(crate) fn was_last(&self) -> bool {
        self.guards.fetch_sub(1, Ordering::AcqRel) & !ONLY == 1
    }

    /// Lets there be no other guard, if there is one; returns whether there is one.
    pub(crate) fn keep_to_one(&self) -> bool {
        let alone = self
            .guards
            .compare_exchange(1, 1 | ONLY, Ordering::AcqRel, Ordering::Acquire);
        alone.is_ok()
    }

    /// Lets there be other guards again.
    pub(crate) fn let_others_come(&self) {
        self.guards.fetch_and(!ONLY, Ordering::AcqRel);
    }

    /// Returns whether a holder still has it, and it is valid.
    pub(crate) fn is_held(&self) -> bool {
        self.guards.load(Ordering::Acquire) & !ONLY > 0 && self.lease.is_held()
    }

    /// Says what ends it.
    pub(crate) fn ends_with(&self, scope: Weak<dyn Scoped>) {
        // The first stays.
        let _ = self.scope.set(Box::new(scope));
    }

    /// Goes on in this span, unless it has one already: of a lease that others join, the first guard's stays.
    pub(crate) fn watch(&self, span: impl FnOnce() -> Span) {
        if self.span.get().is_none() {
            let span = span();
            if !span.is_disabled() {
                // The first stays.
                let _ = self.span.set(Box::new(span));
            }
        }
    }

    /// Records the outcome of the run under a lease that was claimed.
    pub(crate) fn finish(&self, outcome: Word, took: Duration, note: Option<Note>) {
        self.while_held(|lease| {
            self.engine.send(DriverCommand::Finish {
                lease,
                outcome,
                took,
                note,
            });
        });
    }

    /// Asks a majority to keep the lease for its whole time to live from now.
    pub(crate) async fn extend(&self) -> Result<(), ExtendError> {
        let extending = self.while_held(|lease| {
            let extend = move |answer| DriverCommand::Extend { lease, answer };
            self.engine.ask(extend)
        });
        match extending {
            Some(extending) => confirmed(extending.await),
            None => Err(ExtendError::lost(Vec::new())),
        }
    }

    /// Makes it a shared lease.
    pub(crate) async fn downgrade(&self) -> Result<(), ExtendError> {
        let downgrading = self.while_held(|lease| {
            if self.lease.was_shared_from_the_start() {
                return None;
            }
            self.lease.share();
            let downgrade = move |answer| DriverCommand::Downgrade { lease, answer };
            Some(self.engine.ask(downgrade))
        });
        let Some(downgrading) = downgrading else {
            return Err(ExtendError::lost(Vec::new()));
        };
        // Other readers of this process ask now, behind this request on each connection. No caller inherits the lease.
        drop(self.take_turn());
        match downgrading {
            Some(answered) => confirmed(answered.await),
            None if self.lease.is_held() => Ok(()),
            None => Err(ExtendError::lost(Vec::new())),
        }
    }

    /// Attempts once to win an exclusive lease beside it; the future leaves nothing behind if it is dropped.
    ///
    /// `None` if it was given up.
    pub(crate) fn upgrade(&self) -> Option<impl Future<Output = Result<Self, NotWon>> + use<>> {
        let lease = self.while_held(|lease| lease)?;
        let engine = self.engine.clone();
        let subject = LeaseRequest {
            mode: Mode::Exclusive,
            place: None,
            ..self.lease.subject().clone()
        };
        Some(async move {
            let (_, won) = engine.upgrade(lease, subject).await;
            won.map(|(held, _)| held)
        })
    }

    /// Puts another lease into the place of this one.
    pub(crate) fn give_place_to(&self, held: &Arc<Self>) {
        // The key that was to stay is that of the other lease from now on.
        if self.stays.swap(false, Ordering::Relaxed) {
            held.leave_at_the_end();
        }
        let Some(scope) = self.scope.get() else {
            return;
        };
        held.ends_with((**scope).clone());
        match scope.upgrade() {
            Some(scope) => scope.add_held(held),
            // It has ended meanwhile.
            None => _ = held.end_with_its_scope(),
        }
    }

    /// Returns whether the key stays on the nodes when the last guard is gone.
    pub(crate) fn stays(&self) -> bool {
        self.stays.load(Ordering::Relaxed)
    }

    /// Leaves the key on the nodes when the last guard is gone.
    pub(crate) fn leave_at_the_end(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }

    /// Releases the lease for the last of its guards.
    pub(crate) async fn release(self: &Arc<Self>) -> Result<(), ReleaseError> {
        if !self.give_up() {
            return Err(match self.lease.loss() {
                Some(LossReason::ScopeEnded) => ReleaseError::scope_ended(),
                _ => ReleaseError::lost(),
            });
        }
        if self.stays() {
            self.leave();
            return Ok(());
        }
        let turn = match self.pass_on() {
            Ok(()) => return Ok(()),
            Err(turn) => turn,
        };
        let lost = self.end_views(None);
        let confirmed = self.engine.ask(|answer| DriverCommand::Release {
            lease: self.id,
            answer: Some(answer),
        });
        // The release is on its way before the next local caller has its turn, and requests travel in order on
        // each connection, so that caller is not refused by our leftovers.
        drop(turn);
        match (confirmed.await, lost) {
            (Some(confirmed), None) => confirmed,
            _ => Err(ReleaseError::lost()),
        }
    }

    /// Ends the lease because its scope has ended; returns whether that took it from a guard that could rely on it.
    pub(crate) fn end_with_its_scope(&self) -> bool {
        let stays = self.stays();
        // First, so that the loss does not pass the turn on: it does that by itself once the release is on its way.
        let turn = self.take_turn();
        let stage = self.stage();
        // The first reason stays.
        let over =
            (!stays && !stage.is_given_up).then(|| self.lease.take_end(LossReason::ScopeEnded));
        drop(stage);
        drop(over);
        if !self.give_up() {
            return false;
        }
        if stays {
            self.leave();
            return true;
        }
        self.release_unconfirmed();
        drop(turn);
        self.lease.loss() == Some(LossReason::ScopeEnded)
    }

    /// Ends the lease because the last of its guards is gone.
    pub(crate) fn end(self: &Arc<Self>) {
        if !self.give_up() {
            return;
        }
        if self.stays() {
            return self.leave();
        }
        if let Err(turn) = self.pass_on() {
            self.release_unconfirmed();
            // No caller of this process waits for the lease, or none takes it over; the release is on its way now.
            drop(turn);
        }
    }

    /// Gives the lease up, in whatever way it ends; returns whether no other holder has. Its span says if it was lost.
    fn give_up(&self) -> bool {
        if std::mem::replace(&mut self.stage().is_given_up, true) {
            return false;
        }
        if let Some(span) = self.span.get()
            && let Some(reason) = self.lease.loss()
        {
            span.record("lost", reason.to_string());
        }
        true
    }

    /// Leaves the lease and the turn to the next caller of this process.
    ///
    /// # Errors
    ///
    /// The lease is to be released, and then the turn to be dropped, if the holder has it.
    fn pass_on(self: &Arc<Self>) -> Result<(), Option<Turn<Parked>>> {
        let turn = self.take_turn().ok_or(None)?;
        let fairness = self.lease.subject().site.terms.fairness;
        let next = turn.pass_on(fairness, |now| self.fits_another(now), |now| self.park(now));
        next.map(drop).map_err(Some)
    }

    /// Returns whether a next holder in this process may have the lease: it is valid at `now`, and can be handed over.
    fn fits_another(&self, now: Instant) -> bool {
        let deadline = self.lease.held_until(now);
        deadline.is_some_and(|deadline| self.to_hand_over(deadline).is_some())
    }

    /// Returns what the next holder may have of the lease, which is valid up to `deadline`.
    fn to_hand_over(&self, deadline: Instant) -> Option<ParkedLease> {
        ParkedLease::new(self.tokens, self.lease.subject().site.terms, deadline)
    }

    /// Ends this holder's lease and keeps it for the next holder in this process.
    fn park(self: &Arc<Self>, now: Instant) -> Parked {
        // First, so that whatever the driver tells this holder too late to be passed on, it tells the next one.
        self.engine.hand_overs().park(self.id);
        self.end_views(Some(now));
        Parked(Arc::clone(self))
    }

    /// Ends the lease on this side only.
    fn leave(&self) {
        let _turn = self.take_turn();
        self.end_views(None);
        self.engine.send(DriverCommand::Leave { lease: self.id });
    }

    fn release_unconfirmed(&self) {
        self.end_views(None);
        self.engine.send(DriverCommand::Release {
            lease: self.id,
            answer: None,
        });
    }

    /// Views learn of the end before the first node does; returns the reason if there was one before.
    ///
    /// `now` is what the clock shows, if it was just read.
    fn end_views(&self, now: Option<Instant>) -> Option<LossReason> {
        self.stage().is_over = true;
        self.lease.take_end_at(LossReason::Released, now).before
    }

    /// Asks the driver for something, unless the lease was given up.
    fn while_held<T>(&self, ask: impl FnOnce(u64) -> T) -> Option<T> {
        let stage = self.stage();
        (!stage.is_given_up).then(|| ask(self.id))
    }

    /// `None` if the lease was lost, or a reader has it.
    fn take_turn(&self) -> Option<Turn<Parked>> {
        // A turn is there or not at every moment.
        let turn = self.turn.lock();
        turn.unwrap_or_else(PoisonError::into_inner).take()
    }

    fn stage(&self) -> MutexGuard<'_, HeldStage> {
        // Each field is whole at every moment.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        if !self.stage().is_over {
            self.release_unconfirmed();
        }
    }
}

impl Kept for HeldLease {
    fn let_go(&self) -> Option<Telling> {
        let turn = self.take_turn()?;
        Some(Box::new(turn.end()))
    }
}

/// Counted with a guard beside which there is none for now.
const ONLY: usize = 1 << (usize::BITS - 1);

fn confirmed(answer: Option<Result<(), ExtendError>>) -> Result<(), ExtendError> {
    answer.unwrap_or_else(|| Err(ExtendError::unconfirmed(Vec::new())))
}

/// A lease between two holders of this process: its last holder's; dropping it releases the lease.
#[derive(Debug)]
pub(crate) struct Parked(Arc<HeldLease>);

impl Parked {
    /// Returns the lease, for a caller that asks for it on the same terms, if enough of it is left.
    pub(crate) fn take_over(self, subject: LeaseRequest) -> Option<HeldLease> {
        let before = &self.0;
        let (id, engine) = (before.id, &before.engine);
        // It has a loss, whichever holder the driver tells of it.
        let was_lost = || before.lease.was_lost();
        if was_lost() {
            return None;
        }
        // An extension may have been confirmed since it was parked.
        let deadline = before.lease.valid_until();
        let parked = before.to_hand_over(deadline)?;
        let tokens = parked.take_over(&subject.site.terms, subject.site.clock.now())?;
        let next = before.lease.handed_over(subject, deadline, tokens.first());
        if engine.hand_overs().resume(id, next.clone()) {
            engine.send(DriverCommand::SeeHandOvers);
        }
        // If the driver knows of a loss already, no holder has lost the lease.
        if was_lost() {
            next.end(LossReason::Released);
            return None;
        }
        before.stage().is_taken_over = true;
        Some(HeldLease::new(id, next, engine.clone(), tokens))
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        if !self.0.stage().is_taken_over {
            self.0.engine.send(DriverCommand::Release {
                lease: self.0.id,
                answer: None,
            });
        }
    }
}

#[cfg(test)]
mod fixtures {
    use tokio::sync::mpsc::UnboundedReceiver;

    use super::*;
    use crate::clock::Clock;

    pub(super) const TTL: Duration = Duration::from_secs(1);

    impl HeldLease {
        /// Returns a lease without a driver, its commands, and its clock.
        pub(in super::super) fn for_tests() -> (Self, UnboundedReceiver<DriverCommand>, Clock) {
            let clock = Clock::Tokio {
                origin: tokio::time::Instant::now(),
            };
            let (engine, commands) = EngineHandle::new(Duration::ZERO, clock);
            let tokens = TokenBlock::new(1, 3).unwrap();
            let deadline = clock.now() + TTL;
            let lease = Lease::new(subject(clock), deadline, None, tokens.first());
            let held = Self::new(7, lease, engine, tokens);
            (held, commands, clock)
        }
    }

    pub(super) fn subject(clock: Clock) -> LeaseRequest {
        LeaseRequest::for_tests(TTL, clock)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::mpsc,
        task::{Context, Wake},
        thread,
    };

    use tokio::sync::mpsc::UnboundedReceiver;

    use super::{
        fixtures::{TTL, subject},
        *,
    };
    use crate::{ResourceKeys, queue::Queue};

    /// Notes how many commands the driver had when the next caller was woken for its turn.
    struct Woken(UnboundedReceiver<DriverCommand>, AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.1.store(self.0.len(), Ordering::Relaxed);
        }
    }

    /// Looks at a lease, and at what is held, when it is woken.
    struct Looks(Arc<HeldLease>, mpsc::Sender<()>);

    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            assert!(!self.0.is_held());
            self.0
                .finish(Word::new("woken").unwrap(), Duration::ZERO, None);
            let _ = self.1.send(());
        }
    }

    /// Ends a lease while one task waits for its turn, and another for its end; returns how many have looked at it.
    async fn looks_at_the_end(end: impl FnOnce(&HeldLease) + Send + 'static) -> usize {
        let (held, _commands, clock) = HeldLease::for_tests();
        let (queue, keys) = (Queue::new(clock), held.lease().keys().to_vec());
        let keys = ResourceKeys::new(keys).unwrap();
        let turn = queue
            .enter(&keys, Vec::new(), 2)
            .unwrap()
            .turn()
            .await
            .unwrap();
        let next = queue.enter(&keys, Vec::new(), 2).unwrap().turn();
        let held = held.with_turn(turn);
        let view = held.lease().clone();
        let (mut next, mut over) = (Box::pin(next), Box::pin(async move { view.lost().await }));
        let (looked, looks) = mpsc::channel();
        let waker = Arc::new(Looks(Arc::clone(&held), looked)).into();
        let mut context = Context::from_waker(&waker);
        assert!(next.as_mut().poll(&mut context).is_pending());
        assert!(over.as_mut().poll(&mut context).is_pending());
        // A waker that waits for a lock that is held hangs only the thread that is spawned here.
        thread::spawn(move || end(&held));
        let looked = |_: &usize| looks.recv_timeout(Duration::from_secs(2)).is_ok();
        (0..2).take_while(looked).count()
    }

    // Shows: T2.3.
    #[tokio::test(start_paused = true)]
    async fn whoever_is_woken_by_a_loss_can_look_at_the_lease() {
        let lost = |held: &HeldLease| drop(held.lease.take_end(LossReason::MaxHold));
        assert_eq!(looks_at_the_end(lost).await, 2);
    }

    // Shows: T2.3.
    #[tokio::test(start_paused = true)]
    async fn whoever_is_woken_by_the_end_of_a_scope_can_look_at_the_lease() {
        let ended = |held: &HeldLease| assert!(held.end_with_its_scope());
        assert_eq!(looks_at_the_end(ended).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_scope_sends_the_release_before_the_next_caller_has_its_turn() {
        let (held, sent, clock) = HeldLease::for_tests();
        let (queue, keys) = (Queue::new(clock), held.lease().keys().to_vec());
        let keys = ResourceKeys::new(keys).unwrap();
        let turn = queue
            .enter(&keys, Vec::new(), 2)
            .unwrap()
            .turn()
            .await
            .unwrap();
        let mut next = pin!(queue.enter(&keys, Vec::new(), 2).unwrap().turn());
        let woken = Arc::new(Woken(sent, AtomicUsize::new(usize::MAX)));
        let waker = Arc::clone(&woken).into();
        assert!(
            next.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let held = held.with_turn(turn);
        assert!(held.end_with_its_scope());
        assert_eq!(woken.1.load(Ordering::Relaxed), 1);
    }

    fn park(holding: HeldLease) -> Parked {
        assert!(holding.fits_another(Instant::ORIGIN), "it is valid");
        Arc::new(holding).park(Instant::ORIGIN)
    }

    // Shows: T1.11.
    #[tokio::test(start_paused = true)]
    async fn a_hand_over_wakes_the_driver_only_if_it_has_seen_the_lease_parked() {
        let (holding, mut commands, clock) = HeldLease::for_tests();
        let parked = park(holding);
        let holding = parked.take_over(subject(clock)).unwrap();
        assert!(commands.is_empty());

        let parked = park(holding);
        assert_eq!(parked.0.engine.hand_overs().take().len(), 1);
        let holding = parked.take_over(subject(clock)).unwrap();
        let command = commands.try_recv();
        assert!(
            matches!(command, Ok(DriverCommand::SeeHandOvers)),
            "{command:?}"
        );
        drop(holding);
    }

    // Shows: T1.11.
    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_lost_at_the_moment_of_its_hand_over_is_nobodys() {
        let (holding, mut commands, clock) = HeldLease::for_tests();
        assert!(holding.fits_another(clock.now()));
        holding.lease.end(LossReason::Revoked);
        let parked = Arc::new(holding).park(clock.now());
        assert!(parked.take_over(subject(clock)).is_none());
        let command = commands.try_recv();
        assert!(
            matches!(command, Ok(DriverCommand::Release { lease: 7, .. })),
            "{command:?}"
        );
    }

    // Shows: T1.11.
    #[tokio::test(start_paused = true)]
    async fn an_extension_that_is_confirmed_at_the_moment_of_a_hand_over_is_the_next_holders() {
        let (holding, _commands, clock) = HeldLease::for_tests();
        assert!(holding.fits_another(clock.now()));
        holding.lease.extend_to(clock.now() + 3 * TTL);
        let parked = Arc::new(holding).park(clock.now());
        let next = parked.take_over(subject(clock)).unwrap();
        assert_eq!(next.lease().remaining(), 3 * TTL);
    }
}
