//! The queue in front of the nodes: one contender per process and key.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    future::poll_fn,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures_util::task::AtomicWaker;
use redlock_proto::{Fairness, Instant, LocalQueue, NoPlace, Ticket};

use crate::{ResourceKey, ResourceKeys, clock::Clock};

/// The queue in which the callers of one process wait: the protocol's queue decides the order, and this one wakes them.
///
/// A lease `P` may be parked in it for the next caller; the queue drops one that no caller takes over.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    clock: Clock,
    state: Mutex<QueueState<P>>,
}

#[derive(Debug)]
struct QueueState<P> {
    queue: LocalQueue<ResourceKey, P>,
    /// Set when the queue parks no lease for a next caller any more.
    is_closed: bool,
    /// The callers that were polled before their turn came, until they leave.
    waiting: BTreeMap<Ticket, Arc<Waiter<P>>>,
}

/// A place in the queues of some keys; dropping it leaves them.
#[derive(Debug)]
pub(crate) struct QueuePlace<P> {
    queue: Arc<Queue<P>>,
    keys: ResourceKeys,
    /// `None` once the place was left.
    ticket: Option<Ticket>,
}

/// The turn to contend for, and then to hold, one key, or several; dropping it gives the turn to the next callers.
#[derive(Debug)]
pub(crate) struct Turn<P> {
    place: QueuePlace<P>,
    /// The lease that the holder before has left, until it is taken over; dropping the turn leaves it to the next caller.
    inherited: Option<P>,
}

/// A caller that waits for its turn.
#[derive(Debug)]
struct Waiter<P> {
    progress: Mutex<Progress<P>>,
    waker: AtomicWaker,
}

#[derive(Debug)]
enum Progress<P> {
    Waits,
    /// It has its turn, and the lease that is left to it: it takes both without the lock of the queue.
    HasTurn(Option<P>),
    /// The queue was closed, or it has left.
    IsSentAway,
}

/// The queue was closed.
struct SentAway;

impl<P> Queue<P> {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            state: Mutex::new(QueueState {
                queue: LocalQueue::new(),
                is_closed: false,
                waiting: BTreeMap::new(),
            }),
        })
    }

    /// Takes a place behind the earlier callers, if at most `most_waiting` are there and none of them waits for a
    /// turn in `held`.
    pub(crate) fn enter(
        self: &Arc<Self>,
        keys: &ResourceKeys,
        held: Vec<Ticket>,
        most_waiting: usize,
    ) -> Result<QueuePlace<P>, NoPlace> {
        let entered = self
            .state()
            .queue
            .enter(keys.as_slice(), held, most_waiting);
        Ok(QueuePlace {
            queue: Arc::clone(self),
            keys: keys.clone(),
            ticket: Some(entered?),
        })
    }

    /// Returns how many callers have the turn of one of these keys or wait for it: of the one for which most do.
    pub(crate) fn callers_of(&self, keys: &ResourceKeys) -> usize {
        let state = self.state();
        let callers = keys.iter().map(|key| state.queue.callers_of(key));
        callers.max().unwrap_or(0)
    }

    /// Stops parking leases for next callers, drops the parked ones, and sends away the callers that wait.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let parked = state.queue.take_parked();
        let waiting: Vec<_> = mem::take(&mut state.waiting).into_values().collect();
        let left: Vec<_> = waiting.iter().map(|waiter| waiter.send_away()).collect();
        drop(state);
        drop((parked, left));
        waiting.iter().for_each(|waiter| waiter.waker.wake());
    }

    fn state(&self) -> MutexGuard<'_, QueueState<P>> {
        // Nothing panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> QueuePlace<P> {
    /// Waits for the turn, in order; `None` once the queue is closed.
    pub(crate) async fn turn(self) -> Option<Turn<P>> {
        let waiter = {
            let mut state = self.queue.state();
            if self.has_turn(&state) {
                let inherited = self.inherit(&mut state);
                drop(state);
                return Some(self.begin(inherited));
            }
            let ticket = self.ticket.filter(|_| !state.is_closed)?;
            let waiter = Arc::new(Waiter::new());
            // It stays until this place is left, or until the queue is closed.
            state.waiting.insert(ticket, Arc::clone(&waiter));
            waiter
        };
        let inherited = poll_fn(|cx| waiter.poll(cx)).await.ok()?;
        Some(self.begin(inherited))
    }

    /// Returns the turn, if no caller is ahead.
    pub(crate) fn try_turn(self) -> Option<Turn<P>> {
        let mut state = self.queue.state();
        if !self.has_turn(&state) {
            return None;
        }
        let inherited = self.inherit(&mut state);
        drop(state);
        Some(self.begin(inherited))
    }

    const fn begin(self, inherited: Option<P>) -> Turn<P> {
        let place = self;
        Turn { place, inherited }
    }

    /// Takes the lease that the holder before has left, if it has.
    fn inherit(&self, state: &mut QueueState<P>) -> Option<P> {
        state.queue.inherit(self.only_key()?)
    }

    fn has_turn(&self, state: &QueueState<P>) -> bool {
        let keys = self.keys.as_slice();
        self.ticket
            .is_some_and(|ticket| state.queue.has_turn(keys, ticket))
    }

    /// Returns the key, if it is only one.
    fn only_key(&self) -> Option<&ResourceKey> {
        match self.keys.as_slice() {
            [key] => Some(key),
            _ => None,
        }
    }
}

impl<P> Turn<P> {
    /// Gives the turn to the next callers; dropping the result wakes them.
    pub(crate) fn end(mut self) -> NextCallers<P> {
        let inherited = self.inherited.take();
        self.place.leave(inherited)
    }

    /// Returns the number of the place.
    pub(crate) const fn ticket(&self) -> Option<Ticket> {
        self.place.ticket
    }

    /// Returns how many callers wait behind this one: for the key for which most do.
    pub(crate) fn behind(&self) -> usize {
        let QueuePlace { queue, keys, .. } = &self.place;
        queue.callers_of(keys).saturating_sub(1)
    }

    /// Takes the lease that the holder before has left, if it has.
    pub(crate) const fn inherit(&mut self) -> Option<P> {
        self.inherited.take()
    }

    /// Gives the turn to the next caller of this process, and what `park` returns, if a caller waits and `may_park` says
    /// at this moment that the lease fits; dropping the result wakes the caller.
    ///
    /// # Errors
    ///
    /// The turn, if the lease cannot be left to the next caller.
    pub(crate) fn pass_on(
        mut self,
        fairness: Fairness,
        may_park: impl FnOnce(Instant) -> bool,
        park: impl FnOnce(Instant) -> P,
    ) -> Result<NextCallers<P>, Self> {
        let QueuePlace { queue, .. } = &self.place;
        let now = queue.clock.now();
        let may_pass_on = |key: &ResourceKey| {
            let state = queue.state();
            !state.is_closed && state.queue.may_pass_on(key, fairness, now)
        };
        if self.place.only_key().is_some_and(may_pass_on) && may_park(now) {
            // The queue is not locked here: `park` notifies views and recorders, which are application code. The next
            // caller has no turn before this one ends; if no caller waits by then, the lease is released.
            let parked = park(now);
            Ok(self.place.leave(Some(parked)))
        } else {
            Err(self)
        }
    }

    /// Notes that the keys were won from the nodes in this turn.
    pub(crate) fn won(&self) {
        let QueuePlace { queue, keys, .. } = &self.place;
        let now = queue.clock.now();
        let mut state = queue.state();
        for key in keys.iter() {
            state.queue.on_won(key, now);
        }
    }
}

impl<P> QueuePlace<P> {
    /// Leaves the place, and a lease to the next caller if one is `parked`; dropping the result wakes the callers that have
    /// the turn by that.
    fn leave(&mut self, parked: Option<P>) -> NextCallers<P> {
        let Some(ticket) = self.ticket.take() else {
            return NextCallers {
                unclaimed: parked,
                next_callers: Vec::new(),
            };
        };
        let mut state = self.queue.state();
        let QueueState {
            queue,
            is_closed,
            waiting,
        } = &mut *state;
        // It may have been given its turn, and a lease with it, just now.
        let given = waiting.remove(&ticket);
        let parked = parked.or_else(|| given?.send_away());
        let only_key = self.only_key();
        let unclaimed = match (parked, only_key) {
            // It may have been closed just now.
            (Some(parked), Some(key)) if !*is_closed => {
                queue.park(key, parked);
                None
            }
            (parked, _) => parked,
        };
        let left = queue.leave(self.keys.as_slice(), ticket);
        let next_callers = left.next.into_iter().filter_map(|next| {
            // A caller that was not polled yet finds the lease in the queue.
            let waiter = waiting.get(&next)?;
            waiter.begin(only_key.and_then(|key| queue.inherit(key)));
            Some(Arc::clone(waiter))
        });
        NextCallers {
            next_callers: next_callers.collect(),
            unclaimed: unclaimed.or(left.unclaimed),
        }
    }
}

impl<P> Drop for Turn<P> {
    fn drop(&mut self) {
        if self.inherited.is_some() {
            let inherited = self.inherited.take();
            drop(self.place.leave(inherited));
        }
    }
}

impl<P> Waiter<P> {
    const fn new() -> Self {
        Self {
            progress: Mutex::new(Progress::Waits),
            waker: AtomicWaker::new(),
        }
    }

    /// Returns the lease that is left to the caller, if one is, once it has its turn.
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<Option<P>, SentAway>> {
        // Before it looks, so that what comes after the look wakes it.
        self.waker.register(cx.waker());
        match &mut *self.progress() {
            Progress::Waits => Poll::Pending,
            Progress::HasTurn(inherited) => Poll::Ready(Ok(inherited.take())),
            Progress::IsSentAway => Poll::Ready(Err(SentAway)),
        }
    }

    /// Gives the caller its turn, and the lease that is left to it; its waker is to be woken.
    fn begin(&self, inherited: Option<P>) {
        *self.progress() = Progress::HasTurn(inherited);
    }

    /// Lets the caller have no turn; returns the lease that it was given and has not taken.
    fn send_away(&self) -> Option<P> {
        match mem::replace(&mut *self.progress(), Progress::IsSentAway) {
            Progress::HasTurn(inherited) => inherited,
            Progress::Waits | Progress::IsSentAway => None,
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress<P>> {
        // Nothing panics while the lock is held.
        let progress = self.progress.lock();
        progress.unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> Drop for QueuePlace<P> {
    fn drop(&mut self) {
        if self.ticket.is_some() {
            drop(self.leave(None));
        }
    }
}

/// The callers that have the turn now; dropping it wakes them.
///
/// Hold no lock then: wakers are application code.
#[derive(Debug)]
pub(crate) struct NextCallers<P> {
    unclaimed: Option<P>,
    next_callers: Vec<Arc<Waiter<P>>>,
}

impl<P> Drop for NextCallers<P> {
    fn drop(&mut self) {
        // Its release is on its way before the next caller can ask for one of its keys.
        drop(self.unclaimed.take());
        for next in self.next_callers.drain(..) {
            next.waker.wake();
        }
    }
}
