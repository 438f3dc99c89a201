//! The project's client, with all its guards on.

use std::{sync::Once, time::Duration};

use redlock_core::{AcquireOptions, LockGuard, Redlock, Wait};

use super::locks::Locks;
use crate::failed::Result;

/// The project's client.
#[derive(Clone)]
pub(super) struct Ours(Redlock);

impl Ours {
    pub(super) async fn connect(nodes: &[String]) -> Result<Self> {
        let redlock = Redlock::builder()
            .nodes(nodes.iter().map(String::as_str))
            .max_waiters_per_key(WAITERS)
            // Nodes and clients share the machine: a process that gets no CPU for seconds sees an outage that is none.
            .quorum_wait(WAIT)
            .build()
            .await?;
        // The nodes were started for the bench, so they have forgotten nothing.
        redlock.dangerous_bless().await;
        Ok(Self(redlock))
    }
}

impl Locks for Ours {
    type Held = LockGuard;

    async fn acquire(&self, key: &str, ttl: Duration) -> Option<LockGuard> {
        let options = AcquireOptions::new().ttl(ttl).wait(Wait::UpTo(WAIT));
        match self.0.acquire_with(key, options).await {
            Ok(held) => Some(held),
            Err(error) => {
                // The row only counts them.
                FIRST_FAILURE.call_once(|| eprintln!("{key}: {error}"));
                None
            }
        }
    }

    async fn release(&self, held: LockGuard) -> bool {
        held.release().await.is_ok()
    }

    fn is_held(held: &LockGuard) -> bool {
        held.lease().is_held()
    }
}

/// More than any row has, so that none is turned away.
const WAITERS: usize = 100_000;

static FIRST_FAILURE: Once = Once::new();

const WAIT: Duration = Duration::from_secs(60);
