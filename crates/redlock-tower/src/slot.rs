use std::sync::{Mutex, MutexGuard, PoisonError};

use redlock_core::LockGuard;

use crate::OnLost;

/// Where a request keeps its guard, and its handler can take it from.
///
/// Views of the lease lead here, and are cloned; so they do not keep it, and it is emptied with the request.
#[derive(Debug)]
pub(crate) struct Slot {
    content: Mutex<Content>,
    on_lost: OnLost,
}

/// The guard of a request, or why it is no longer here.
#[derive(Debug)]
enum Content {
    Guard(LockGuard),
    /// The handler has it.
    TakenOut,
    Ended(Ending),
}

/// Why a request let its lock go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    /// Its layer was to hold it for no longer, though the body goes on.
    AsAsked,
    /// The request is over.
    Over,
}

impl Slot {
    /// Makes a slot with `guard` in it, and what is to happen when its lease is lost.
    pub(crate) fn new(guard: LockGuard, on_lost: OnLost) -> Self {
        Self {
            content: Mutex::new(Content::Guard(guard)),
            on_lost,
        }
    }

    /// Takes the guard for the handler, if it is still here.
    pub(crate) fn take(&self) -> Option<LockGuard> {
        self.empty(Content::TakenOut)
    }

    /// Takes the guard to let it go, if it is still here.
    pub(crate) fn end(&self, ending: Ending) -> Option<LockGuard> {
        self.empty(Content::Ended(ending))
    }

    /// Returns what the layer does when the lease is lost.
    pub(crate) fn on_lost(&self) -> OnLost {
        self.on_lost
    }

    /// Returns whether the guard is still here.
    pub(crate) fn is_full(&self) -> bool {
        matches!(*self.look(), Content::Guard(_))
    }

    /// Returns whether the handler has the guard.
    pub(crate) fn is_taken_out(&self) -> bool {
        matches!(*self.look(), Content::TakenOut)
    }

    /// Returns whether the lock may end before the request: the handler took it, or the layer was to release it early.
    pub(crate) fn may_be_outlived(&self) -> bool {
        matches!(
            *self.look(),
            Content::TakenOut | Content::Ended(Ending::AsAsked)
        )
    }

    /// Takes the guard, and leaves why it is not here; if it was gone before, the reason of that stays.
    fn empty(&self, reason: Content) -> Option<LockGuard> {
        let mut content = self.look();
        if !matches!(*content, Content::Guard(_)) {
            return None;
        }
        match std::mem::replace(&mut *content, reason) {
            Content::Guard(guard) => Some(guard),
            Content::TakenOut | Content::Ended(_) => None,
        }
    }

    fn look(&self) -> MutexGuard<'_, Content> {
        // Nothing panics while it is locked.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
