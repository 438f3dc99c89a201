use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use redlock_proto::Word;
use tracing::Span;

use crate::{
    ExtendError, Lease, LossReason, ReleaseError,
    engine::{Holding, Parked},
    lease::Kept,
    queue::Turn,
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
    span: OnceLock<Span>,
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
        }
    }

    pub(crate) const fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Counts another guard; returns whether there may be one, because the last is not gone.
    pub(super) fn has_another(&self) -> bool {
        let guards = &self.guards;
        let another = |guards: usize| (guards > 0).then_some(guards + 1);
        let counted = guards.fetch_update(Ordering::AcqRel, Ordering::Acquire, another);
        counted.is_ok()
    }

    /// A guard is gone; returns whether it was the last.
    pub(super) fn was_last(&self) -> bool {
        self.guards.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Goes on in this span.
    pub(super) fn watch(&self, span: Span) {
        // The first stays.
        let _ = self.span.set(span);
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
        // Those of this process come now, behind the request on each connection. Nobody takes the lease over any more.
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
        if let Some(holding) = &*self.holding()
            && !stays
        {
            // The first reason stays.
            holding.tell(LossReason::ScopeEnded);
        }
        let Some(holding) = self.give_up() else {
            return false;
        };
        if stays {
            self.leave(holding);
            return true;
        }
        // The turn passes on once the release is on its way.
        let _turn = self.turn.take();
        drop(holding);
        self.lease.loss() == Some(LossReason::ScopeEnded)
    }

    /// Returns whether a holder still has it, and it is valid.
    pub(crate) fn is_held(&self) -> bool {
        self.guards.load(Ordering::Acquire) > 0 && self.lease.is_held()
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
            // If nobody in this process waits for it, the lease is released before the turn passes on.
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

/// Leaves the lease to the next caller of this process; else returns it, to be released.
fn pass_on(turn: &Turn<Parked>, holding: Holding) -> Option<Holding> {
    turn.pass_on(holding, Holding::to_hand_over, Holding::park)
}

impl Kept for HolderTurn {
    fn let_go(&self) {
        drop(self.take());
    }
}
