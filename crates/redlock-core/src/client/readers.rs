//! The leases that callers of one process share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use redlock_proto::{Instant, OpenLease, Terms};

use crate::{LockGuard, ResourceKeys, guard::HeldLease};

/// The shared leases that other callers of the process may join, by what they are on.
#[derive(Debug)]
pub(super) struct Readers(Mutex<State>);

#[derive(Debug)]
struct State {
    open: HashMap<ResourceKeys, Open>,
    /// With so many, those are dropped that may be joined no more.
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

    /// Returns another guard of a lease on just these keys, if one may be joined on these terms.
    pub(super) fn join(
        &self,
        keys: &ResourceKeys,
        terms: &Terms,
        now: Instant,
    ) -> Option<LockGuard> {
        let held = {
            let state = self.state();
            let open = state.open.get(keys)?;
            let held = open.held.upgrade()?;
            let deadline = held.lease().valid_until();
            open.lease.may_join(terms, deadline, now).then_some(held)?
        };
        let guard = LockGuard::another(held)?;
        guard.is_held().then_some(guard)
    }

    /// Lets others join a lease that was won at `now`.
    pub(super) fn open(&self, keys: &ResourceKeys, guard: &LockGuard, terms: Terms, now: Instant) {
        let Some(lease) = OpenLease::new(terms, now) else {
            return;
        };
        let mut state = self.state();
        if state.open.len() >= state.sweep_at {
            let stays = |open: &Open| open.held.strong_count() > 0 && !open.lease.is_over(now);
            state.open.retain(|_, open| stays(open));
            state.sweep_at = (2 * state.open.len()).max(FEW);
        }
        let held = Arc::downgrade(guard.held());
        state.open.insert(keys.clone(), Open { held, lease });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const FEW: usize = 16;
