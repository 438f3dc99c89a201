//! The queue in front of the nodes: one contender per process and key.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use redlock_proto::{Fairness, Instant, LocalQueue, NoPlace, Ticket};
use tokio::sync::oneshot;

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
    /// The callers that were polled before their turn came.
    waiting: BTreeMap<Ticket, oneshot::Sender<()>>,
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
pub(crate) struct Turn<P>(QueuePlace<P>);

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
        let waiting = mem::take(&mut state.waiting);
        drop(state);
        drop((parked, waiting));
    }

    fn state(&self) -> MutexGuard<'_, QueueState<P>> {
        // Nothing panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> QueuePlace<P> {
    /// Waits for the turn, in order; `None` once the queue is closed.
    pub(crate) async fn turn(self) -> Option<Turn<P>> {
        if let Some(turn) = self.until_turn() {
            // The sender stays until the turn comes, until this place is left, or until the queue is closed.
            turn.await.ok()?;
        }
        Some(Turn(self))
    }

    /// Returns the turn, if no caller is ahead.
    pub(crate) fn try_turn(self) -> Option<Turn<P>> {
        let has_turn = self.has_turn(&self.queue.state());
        has_turn.then_some(Turn(self))
    }

    /// Returns a receiver that resolves when the turn comes; `None` if it has come.
    fn until_turn(&self) -> Option<oneshot::Receiver<()>> {
        let mut state = self.queue.state();
        let ticket = self.ticket.filter(|_| !self.has_turn(&state))?;
        let (sender, receiver) = oneshot::channel();
        if !state.is_closed {
            state.waiting.insert(ticket, sender);
        }
        Some(receiver)
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
        self.0.leave(None)
    }

    /// Returns the number of the place.
    pub(crate) const fn ticket(&self) -> Option<Ticket> {
        self.0.ticket
    }

    /// Returns how many callers wait behind this one: for the key for which most do.
    pub(crate) fn behind(&self) -> usize {
        let QueuePlace { queue, keys, .. } = &self.0;
        queue.callers_of(keys).saturating_sub(1)
    }

    /// Takes the lease that the holder before has left, if it has.
    pub(crate) fn inherit(&self) -> Option<P> {
        let key = self.0.only_key()?;
        self.0.queue.state().queue.inherit(key)
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
        park: impl FnOnce() -> P,
    ) -> Result<NextCallers<P>, Self> {
        let QueuePlace { queue, .. } = &self.0;
        let now = queue.clock.now();
        let may_pass_on = |key: &ResourceKey| {
            let state = queue.state();
            !state.is_closed && state.queue.may_pass_on(key, fairness, now)
        };
        if self.0.only_key().is_some_and(may_pass_on) && may_park(now) {
            // The queue is not locked here: `park` notifies views and recorders, which are application code. The next
            // caller has no turn before this one ends; if no caller waits by then, the lease is released.
            let parked = park();
            Ok(self.0.leave(Some(parked)))
        } else {
            Err(self)
        }
    }

    /// Notes that the keys were won from the nodes in this turn.
    pub(crate) fn won(&self) {
        let QueuePlace { queue, keys, .. } = &self.0;
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
        state.waiting.remove(&ticket);
        let unclaimed = match (parked, self.only_key()) {
            // It may have been closed just now.
            (Some(parked), Some(key)) if !state.is_closed => {
                state.queue.park(key, parked);
                None
            }
            (parked, _) => parked,
        };
        let left = state.queue.leave(self.keys.as_slice(), ticket);
        let next_callers = left.next.into_iter();
        NextCallers {
            unclaimed: unclaimed.or(left.unclaimed),
            next_callers: next_callers
                .filter_map(|next| state.waiting.remove(&next))
                .collect(),
        }
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
    next_callers: Vec<oneshot::Sender<()>>,
}

impl<P> Drop for NextCallers<P> {
    fn drop(&mut self) {
        // Its release is on its way before the next caller can ask for one of its keys.
        drop(self.unclaimed.take());
        for next in self.next_callers.drain(..) {
            // The caller may have gone away just now; its place then wakes the one after it.
            let _ = next.send(());
        }
    }
}
