use std::sync::{Mutex, MutexGuard, PoisonError};

use redlock_core::LockGuard;

use crate::OnLost;

/// Where a request keeps its guard, and its handler can take it from.
///
/// Views of the lease lead here, and are cloned; so they do not keep it, and it is emptied with the request.
#[derive(Debug)]
pub(crate) struct Slot {
    guard: Mutex<Option<LockGuard>>,
    on_lost: OnLost,
}

impl Slot {
    /// Makes a slot with `guard` in it, and what is to happen when its lease is lost.
    pub(crate) fn new(guard: LockGuard, on_lost: OnLost) -> Self {
        Self {
            guard: Mutex::new(Some(guard)),
            on_lost,
        }
    }

    /// Takes the guard, if nobody has taken it before.
    pub(crate) fn take(&self) -> Option<LockGuard> {
        self.look().take()
    }

    /// Returns what the layer does when the lease is lost.
    pub(crate) fn on_lost(&self) -> OnLost {
        self.on_lost
    }

    /// Returns whether the guard is still here.
    pub(crate) fn is_full(&self) -> bool {
        self.look().is_some()
    }

    fn look(&self) -> MutexGuard<'_, Option<LockGuard>> {
        // Nothing panics while it is locked.
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
