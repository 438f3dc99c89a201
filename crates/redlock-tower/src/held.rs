use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use redlock_core::{LockGuard, LossReason};

/// The lock that a request holds, and the watch over it; dropping it releases the lock.
pub(crate) struct Held {
    // `Sync`, so that a response's body is if the inner one is.
    lost: Pin<Box<dyn Future<Output = LossReason> + Send + Sync>>,
    _guard: LockGuard,
}

impl Held {
    pub(crate) fn new(guard: LockGuard) -> Self {
        let lease = guard.lease().clone();
        Self {
            lost: Box::pin(async move { lease.lost().await }),
            _guard: guard,
        }
    }

    /// Looks at the clock, and asks to be woken when the lease is lost.
    ///
    /// To be called before each poll of what the lock protects; not to be called again once ready.
    pub(crate) fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LossReason> {
        self.lost.as_mut().poll(cx)
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("guard", &self._guard)
            .finish_non_exhaustive()
    }
}
