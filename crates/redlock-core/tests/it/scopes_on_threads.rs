//! Scopes whose parts run on several threads.

use redlock_core::{AcquireError, LockGuard, Redlock};
use tokio::task::JoinSet;

/// Has a part acquire each of these keys in one scope, all at the same time; returns what each got.
async fn parts(redlock: &Redlock, keys: &[&'static str]) -> Vec<Result<LockGuard, AcquireError>> {
    let scope = redlock.current_scope().unwrap();
    let mut parts = JoinSet::new();
    for key in keys {
        let (scope, redlock, key) = (scope.clone(), redlock.clone(), *key);
        parts.spawn(async move { scope.enter(async { redlock.acquire(key).await }).await });
    }
    parts.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_on_several_threads_that_acquire_the_same_keys_share_their_leases() {
    let redlock = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    let keys = ["a", "b", "c", "d"].repeat(6);
    for round in 0..3_000 {
        let guards = redlock.scope(async { parts(&redlock, &keys).await }).await;
        for guard in guards {
            assert!(guard.is_ok(), "in round {round}: {:?}", guard.err());
        }
    }
}
