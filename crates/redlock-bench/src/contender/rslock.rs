//! The crate `rslock`: tasks, and every node is waited for.

use std::time::Duration;

use ::rslock::{LockGuard, LockManager};

use super::{TTL, locks::Locks};
use crate::failed::Result;

/// The peer, with its own retries.
#[derive(Clone)]
pub(super) struct Rslock(LockManager);

impl Rslock {
    pub(super) async fn connect(nodes: &[String]) -> Result<Self> {
        let manager = LockManager::new(nodes.iter().map(String::as_str).collect());
        // It connects at its first use.
        manager.acquire("bench:first", TTL).await?.release().await;
        Ok(Self(manager))
    }
}

impl Locks for Rslock {
    type Held = LockGuard;

    async fn acquire(&self, key: &str, ttl: Duration) -> Option<LockGuard> {
        self.0.acquire(key, ttl).await.ok()
    }

    async fn release(&self, held: LockGuard) -> bool {
        // It does not say how that went.
        held.release().await;
        true
    }
}
