//! The leases that callers of one process share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use redlock_proto::{Instant, LeaseTerms, OpenLease};

use crate::{LockGuard, ResourceKeys, guard::HeldLease};

/// The shared leases that other callers of the process may join, by their keys.
#[derive(Debug)]
pub(super) struct Readers(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The leases on the same keys, the oldest first.
    open: HashMap<ResourceKeys, Vec<Open>>,
    /// Above this number, the table drops leases that have no holder any more.
    sweep_at: usize,
}

#[derive(Debug)]
struct Open {
    held: Weak<HeldLease>,
    lease: OpenLease,
}

impl Readers {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            open: HashMap::new(),
            sweep_at: FEW,
        }))
    }

    /// Returns another guard of the newest lease on exactly these keys, if a caller may join it on these terms.
    pub(super) fn join(
        &self,
        keys: &ResourceKeys,
        terms: &LeaseTerms,
        now: Instant,
    ) -> Option<LockGuard> {
        let held = {
            let mut state = self.state();
            let open = state.open.get_mut(keys)?;
            open.retain(Open::is_held);
            let (oldest, newest) = (open.first()?, open.last()?);
            let held = newest.held.upgrade()?;
            let deadline = held.lease().valid_until();
            let may_join = newest.lease.may_join(terms, &oldest.lease, deadline, now);
            may_join.then_some(held)?
        };
        // A holder that leaves the key on the nodes must not decide that for other readers.
        if held.stays() {
            return None;
        }
        let guard = LockGuard::another(held)?;
        guard.is_held().then_some(guard)
    }

    /// Lets others join a lease that was won at `now`.
    pub(super) fn open(
        &self,
        keys: &ResourceKeys,
        guard: &LockGuard,
        terms: LeaseTerms,
        now: Instant,
    ) {
        let Some(lease) = OpenLease::new(terms, now) else {
            return;
        };
        let mut state = self.state();
        if state.open.len() >= state.sweep_at {
            state.open.retain(|_, open| {
                open.retain(Open::is_held);
                !open.is_empty()
            });
            state.sweep_at = (2 * state.open.len()).max(FEW);
        }
        let held = Arc::downgrade(guard.held());
        let open = state.open.entry(keys.clone()).or_default();
        open.retain(Open::is_held);
        open.push(Open { held, lease });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn is_held(&self) -> bool {
        self.held.upgrade().is_some_and(|held| held.is_held())
    }
}

const FEW: usize = 16;
