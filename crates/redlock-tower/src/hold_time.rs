use std::{sync::Arc, time::Duration};

use redlock_core::Redlock;
use tokio::time::Instant;

use crate::{RequestLease, pace::Pace, terms::Terms};

/// How long a request has waited for its lock, and how long it holds it; for people and statistics, and no deadline.
#[derive(Debug)]
pub(crate) struct HoldTime {
    redlock: Redlock,
    pace: Arc<Pace>,
    waited: Duration,
    since: Instant,
}

impl HoldTime {
    /// A request that has waited for so long has its lock.
    pub(crate) fn begin(terms: &Terms, waited: Duration) -> Self {
        Self {
            redlock: terms.redlock.clone(),
            pace: Arc::clone(&terms.pace),
            waited,
            since: Instant::now(),
        }
    }

    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }

    /// The request lets its lock go.
    pub(crate) fn end(self, lease: &RequestLease) {
        let held = self.since.elapsed();
        self.pace.held(held);
        tracing::debug!(
            target: crate::TARGET,
            client = self.redlock.id(),
            namespace = &*self.redlock.namespace(),
            class = lease.class(),
            token = lease.token().get(),
            waited = ?self.waited,
            ?held,
            "a request has held its lock"
        );
    }
}
