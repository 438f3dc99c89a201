use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use redlock_proto::Word;

use crate::{
    ExtendError, Lease, LossReason, ReleaseError,
    engine::{Holding, Looked, NotWon, Parked},
    lease::{Kept, Telling},
    queue::Turn,
    quiet::QuietSpan,
};

/// What the guards of one lease share; the lease is released with the last of them.
#[derive(Debug)]
pub(crate) struct HeldLease {
    lease: Lease,
    /// How many guards there are.
    guards: AtomicUsize,
    /// `None` once it was given up.
    holding: Mutex<Option<Holding>>,
    turn: Arc<HolderTurn>,
    /// Whether the key stays on the nodes when it is given up.
    stays: AtomicBool,
    /// Its span, which ends with it.
    span: OnceLock<QuietSpan>,
    /// What ends it, and must know the lease that takes its place.
    scope: OnceLock<Weak<dyn Scoped>>,
}

/// What ends the leases that were acquired in it.
pub(crate) trait Scoped: Send + Sync {
    /// Counts a lease as its own; a lease that comes when it has ended is over.
    fn has_got(&self, held: &Arc<HeldLease>);
}

/// The holder's turn in the local queue, until the guard takes it or the lease is lost; a reader has none.
#[derive(Debug)]
struct HolderTurn(Mutex<Option<Turn<Parked>>>);

impl HeldLease {
    pub(super) fn new(holding: Holding, turn: Option<Turn<Parked>>) -> Self {
        let turn = Arc::new(HolderTurn(Mutex::new(turn)));
        // A loss passes the turn on, however busy or idle the holder is.
        holding.keep(Arc::clone(&turn) as Arc<dyn Kept>);
        Self {
            lease: holding.lease().clone(),
            guards: AtomicUsize::new(1),
            holding: Mutex::new(Some(holding)),
            turn,
            stays: AtomicBool::new(false),
            span: OnceLock::new(),
            scope: OnceLock::new(),
        }
    }

    pub(crate) const fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Counts another guard; returns whether there may be one, because the last is not gone.
    pub(super) fn has_another(&self) -> bool {
        let guards = &self.guards;
        let another = |guards: usize| (guards > 0 && guards & ONLY == 0).then_some(guards + 1);
        let counted = guards.fetch_update(Ordering::AcqRel, Ordering::Acquire, another);
        counted.is_ok()
    }

    /// Counts a guard that is gone; returns whether it was the last.
    pub(super) fn was_last(&self) -> bool {
        self.guards.fetch_sub(1, Ordering::AcqRel) & !ONLY == 1
    }

    /// Lets there be no other guard, if there is one; returns whether there is one.
    pub(super) fn keep_to_one(&self) -> bool {
        let alone = self
            .guards
            .compare_exchange(1, 1 | ONLY, Ordering::AcqRel, Ordering::Acquire);
        alone.is_ok()
    }

    /// Lets there be other guards again.
    pub(super) fn let_others_come(&self) {
        self.guards.fetch_and(!ONLY, Ordering::AcqRel);
    }

    /// Says what ends it.
    pub(crate) fn ends_with(&self, scope: Weak<dyn Scoped>) {
        // The first stays.
        let _ = self.scope.set(scope);
    }

    /// Attempts once to win an exclusive lease beside it; the future leaves nothing behind if it is dropped.
    ///
    /// `None` if it was given up.
    pub(super) fn upgrade(&self) -> Option<impl Future<Output = Result<Holding, NotWon>> + use<>> {
        self.holding().as_ref().map(Holding::upgrade)
    }

    /// Puts another lease into the place of this one.
    pub(super) fn give_place_to(&self, held: &Arc<Self>) {
        // The key that was to stay is that of the other lease from now on.
        if self.stays.swap(false, Ordering::Relaxed) {
            held.leave_at_the_end();
        }
        let Some(scope) = self.scope.get() else {
            return;
        };
        held.ends_with(Weak::clone(scope));
        match scope.upgrade() {
            Some(scope) => scope.has_got(held),
            // It has ended meanwhile.
            None => _ = held.end_with_its_scope(),
        }
    }

    /// Goes on in this span, unless it has one already: of a lease that others join, the first guard's stays.
    pub(super) fn watch(&self, span: impl FnOnce() -> QuietSpan) {
        self.span.get_or_init(span);
    }

    /// Says what came of the run under a lease that was claimed.
    pub(super) fn finish(&self, outcome: Word, took: Duration) {
        if let Some(holding) = &*self.holding() {
            holding.finish(outcome, took);
        }
    }

    /// Asks a majority to keep the lease for its whole time to live from now.
    pub(super) async fn extend(&self) -> Result<(), ExtendError> {
        let extending = self.holding().as_ref().map(Holding::extend);
        match extending {
            Some(extending) => extending.await,
            None => Err(ExtendError::lost(Vec::new())),
        }
    }

    /// Makes it a shared lease.
    pub(super) async fn downgrade(&self) -> Result<(), ExtendError> {
        let downgrading = match &*self.holding() {
            Some(holding) => holding.downgrade(),
            None => return Err(ExtendError::lost(Vec::new())),
        };
        // Other readers of this process ask now, behind this request on each connection. No caller inherits the lease.
        drop(self.turn.take());
        match downgrading {
            Some(confirmed) => confirmed.await,
            None if self.lease.is_held() => Ok(()),
            None => Err(ExtendError::lost(Vec::new())),
        }
    }

    /// Returns whether the key stays on the nodes when the last guard is gone.
    pub(crate) fn stays(&self) -> bool {
        self.stays.load(Ordering::Relaxed)
    }

    /// Leaves the key on the nodes when the last guard is gone.
    pub(super) fn leave_at_the_end(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }

    /// Releases the lease for the last of its guards.
    pub(super) async fn release(&self) -> Result<(), ReleaseError> {
        let Some(holding) = self.give_up() else {
            return Err(match self.lease.loss() {
                Some(LossReason::ScopeEnded) => ReleaseError::scope_ended(),
                _ => ReleaseError::lost(),
            });
        };
        if self.stays() {
            self.leave(holding);
            return Ok(());
        }
        let Some(turn) = self.turn.take() else {
            return holding.release().await;
        };
        let Some(holding) = pass_on(&turn, holding) else {
            return Ok(());
        };
        let confirmation = holding.release();
        // The release is on its way before the next local caller has its turn, and requests travel in order on
        // each connection, so that caller is not refused by our leftovers.
        drop(turn);
        confirmation.await
    }

    /// Ends the lease because its scope has ended; returns whether that took it from a guard that could rely on it.
    pub(crate) fn end_with_its_scope(&self) -> bool {
        let stays = self.stays();
        // First, so that the loss does not pass the turn on: it does that by itself once the release is on its way.
        let turn = self.turn.take();
        let holding = self.holding();
        let held = holding.as_ref().filter(|_| !stays);
        // The first reason stays.
        let over = held.map(|holding| holding.tell(LossReason::ScopeEnded));
        drop(holding);
        drop(over);
        let Some(holding) = self.give_up() else {
            return false;
        };
        if stays {
            self.leave(holding);
            return true;
        }
        drop(holding);
        drop(turn);
        self.lease.loss() == Some(LossReason::ScopeEnded)
    }

    /// Returns whether a holder still has it, and it is valid.
    pub(crate) fn is_held(&self) -> bool {
        self.guards.load(Ordering::Acquire) & !ONLY > 0 && self.lease.is_held()
    }

    /// Ends the lease because the last of its guards is gone.
    pub(super) fn end(&self) {
        let Some(holding) = self.give_up() else {
            return;
        };
        if self.stays() {
            return self.leave(holding);
        }
        match self.turn.take() {
            // If no caller of this process waits for it, the lease is released before the turn passes on.
            Some(turn) => drop(pass_on(&turn, holding)),
            None => drop(holding),
        }
    }

    fn leave(&self, holding: Holding) {
        let _turn = self.turn.take();
        holding.leave();
    }

    /// Takes what is held, in whatever way it ends; its span says if that was lost.
    fn give_up(&self) -> Option<Holding> {
        let holding = self.holding().take()?;
        if let Some(span) = self.span.get()
            && !span.is_disabled()
            && let Some(reason) = holding.loss()
        {
            span.record("lost", tracing::field::display(reason));
        }
        Some(holding)
    }

    fn holding(&self) -> MutexGuard<'_, Option<Holding>> {
        // It is there or not at every moment.
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HolderTurn {
    /// `None` if the lease was lost.
    fn take(&self) -> Option<Turn<Parked>> {
        // A turn is there or not at every moment.
        let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turn.take()
    }
}

/// Counted with a guard beside which there is none for now.
const ONLY: usize = 1 << (usize::BITS - 1);

/// Leaves the lease to the next caller of this process; else returns it, to be released.
fn pass_on(turn: &Turn<Parked>, mut holding: Holding) -> Option<Holding> {
    match holding.looked() {
        Some(Looked::Undisputed { asked }) => turn.on_undisputed(asked),
        Some(Looked::Nothing) => turn.look_again(),
        Some(Looked::Disputed) | None => {}
    }
    let holding = turn.pass_on(holding, Holding::to_hand_over, Holding::park)?;
    if holding.has_asked() {
        turn.look_again();
    }
    Some(holding)
}

impl Kept for HolderTurn {
    fn let_go(&self) -> Option<Telling> {
        let turn = self.take()?;
        Some(Box::new(turn.end()))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::{atomic::AtomicUsize, mpsc},
        task::{Context, Wake},
        thread,
    };

    use super::*;
    use crate::{engine::Holding, queue::Queue};

    /// Notes how many commands the driver had when the next caller was woken for its turn.
    struct Told(Box<dyn Fn() -> usize + Send + Sync>, AtomicUsize);

    impl Wake for Told {
        fn wake(self: Arc<Self>) {
            self.1.store((self.0)(), Ordering::Relaxed);
        }
    }

    /// Looks at a lease, and at what is held, when it is woken.
    struct Looks(Arc<HeldLease>, mpsc::Sender<()>);

    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            assert!(!self.0.is_held());
            self.0.finish(Word::new("woken").unwrap(), Duration::ZERO);
            let _ = self.1.send(());
        }
    }

    /// Ends a lease while one task waits for its turn, and another for its end; returns how many have looked at it.
    async fn looks_at_the_end(end: impl FnOnce(&HeldLease) + Send + 'static) -> usize {
        let (holding, _, clock) = Holding::for_tests();
        let (queue, keys) = (Queue::new(clock), holding.lease().keys().to_vec());
        let keys = crate::ResourceKeys::new(keys).unwrap();
        let turn = queue.enter(&keys, Vec::new(), 2).unwrap().turn().await;
        let next = queue.enter(&keys, Vec::new(), 2).unwrap().turn();
        let held = Arc::new(HeldLease::new(holding, Some(turn)));
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
        let lost = |held: &HeldLease| {
            let holding = held.give_up().unwrap();
            drop(holding.tell(LossReason::MaxHold));
        };
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
        let (holding, sent, clock) = Holding::for_tests();
        let (queue, keys) = (Queue::new(clock), holding.lease().keys().to_vec());
        let keys = crate::ResourceKeys::new(keys).unwrap();
        let turn = queue.enter(&keys, Vec::new(), 2).unwrap().turn().await;
        let mut next = pin!(queue.enter(&keys, Vec::new(), 2).unwrap().turn());
        let told = Arc::new(Told(sent, AtomicUsize::new(usize::MAX)));
        let waker = Arc::clone(&told).into();
        assert!(
            next.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let held = HeldLease::new(holding, Some(turn));
        assert!(held.end_with_its_scope());
        assert_eq!(told.1.load(Ordering::Relaxed), 1);
    }
}
