//! The callers of one process, which take turns at a key.
//!
//! They wait in the protocol's local queue, which decides when a lease passes from one caller to the next.

use redlock_proto::{Acquire, Fairness, Instant, LocalQueue, LockMode, ParkedLease, Ticket};

use crate::setup::Micros;

/// The queues of one process, and the callers that wait in them.
#[derive(Debug, Default)]
pub(super) struct Callers {
    pub(super) queue: LocalQueue<usize, ParkedLease>,
    pub(super) waiting: Vec<Caller>,
    /// What was asked for last, by key: callers of one process mostly ask for the same.
    pub(super) last: Vec<Option<Ask>>,
}

/// What a caller asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) mode: LockMode,
    pub(super) ttl: Micros,
    /// For how long the key must rest.
    pub(super) rest: Micros,
    pub(super) renew: bool,
    pub(super) max_hold: Option<Micros>,
    pub(super) fairness: Fairness,
}

/// A caller before it contends.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) waiter: u64,
    pub(super) key: usize,
    pub(super) ticket: Ticket,
    pub(super) acquire: Acquire,
    pub(super) rest: Micros,
    /// When it goes away.
    pub(super) leaves_at: Micros,
    /// When it goes away once it contends, if it does.
    pub(super) abandons_at: Option<Micros>,
    pub(super) stage: Stage,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// Others are ahead.
    Waits,
    /// It has its turn, and notices when it is polled next.
    Called,
}

impl Callers {
    pub(super) fn new(keys: usize) -> Self {
        Self {
            last: vec![None; keys],
            ..Self::default()
        }
    }

    pub(super) fn find(&mut self, waiter: u64) -> Option<&mut Caller> {
        let mut waiting = self.waiting.iter_mut();
        waiting.find(|caller| caller.waiter == waiter)
    }

    pub(super) fn take(&mut self, waiter: u64) -> Option<Caller> {
        let mut waiting = self.waiting.iter();
        let place = waiting.position(|caller| caller.waiter == waiter)?;
        Some(self.waiting.remove(place))
    }

    /// Tells the queues that the caller with the turn has won `keys` from the nodes.
    pub(super) fn won(&mut self, keys: &[usize], now: Instant) {
        for key in keys {
            self.queue.on_won(key, now);
        }
    }

    /// Returns how many callers wait for their turn.
    pub(super) fn that_wait(&self) -> usize {
        let waiting = self.waiting.iter();
        waiting
            .filter(|caller| caller.stage == Stage::Waits)
            .count()
    }

    /// Returns the numbers of all callers that wait, in the order in which they came.
    pub(super) fn waiters(&self) -> Vec<u64> {
        let waiting = self.waiting.iter();
        waiting.map(|caller| caller.waiter).collect()
    }
}
