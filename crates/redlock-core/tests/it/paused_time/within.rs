//! Acquires that would wait for the lease under which they are made, in paused time.

use std::{panic::AssertUnwindSafe, pin::pin, time::Duration};

use futures_util::FutureExt;
use redlock_core::{AcquireErrorKind, ClaimOptions, Redlock, Tick, Wait};
use tokio::{task::JoinSet, time::Instant};

use crate::paused_time::fixtures::{SECOND, client, faulty};

async fn refusal(redlock: &Redlock, key: &str) -> Option<AcquireErrorKind> {
    let acquired = redlock.acquire(key).await;
    acquired.err().map(|error| error.kind())
}

#[tokio::test(start_paused = true)]
async fn an_acquire_under_a_lease_on_the_same_resource_is_refused_at_once() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    let began = Instant::now();
    let work = async {
        let other = redlock.acquire("other").await.expect("nobody holds it");
        let both = other.run(async {
            let first = refusal(&redlock, "key").await;
            tokio::task::yield_now().await;
            (first, refusal(&redlock, "other").await)
        });
        let both = both.await.expect("it is held");
        drop(other);
        // It was released, and only the outer one is in the way.
        drop(redlock.acquire("other").await.expect("nobody holds it"));
        both
    };
    let both = guard.run(work).await.expect("it is held");
    let already = Some(AcquireErrorKind::AlreadyHeld);
    assert_eq!(both, (already, already));
    assert_eq!(began.elapsed(), Duration::ZERO);
    guard.release().await.unwrap();
    assert_eq!(refusal(&redlock, "key").await, None);
}

#[tokio::test(start_paused = true)]
async fn only_the_one_that_would_wait_for_itself_is_refused() {
    let nodes = faulty(3);
    let (redlock, elsewhere) = (client(&nodes).await, client(&nodes).await);
    let guard = redlock.acquire("key").await.unwrap();
    let began = Instant::now();
    let kinds = guard.run(async {
        // Another task may well be another's, and another client is another holder.
        let mut tasks = JoinSet::new();
        let spawned = redlock.clone();
        tasks.spawn(async move { refusal(&spawned, "key").await });
        let there = refusal(&elsewhere, "key").await;
        (there, tasks.join_next().await.expect("one was spawned"))
    });
    let (there, spawned) = kinds.await.expect("it is held");
    let contended = Some(AcquireErrorKind::Contended);
    assert_eq!((there, spawned.unwrap()), (contended, contended));
    assert!(began.elapsed() >= 5 * SECOND, "they waited");

    // Beside the work and not in it:
    let waiting = async {
        let waiter = refusal(&redlock, "key");
        let mut waiter = pin!(waiter);
        assert_eq!(waiter.as_mut().now_or_never(), None, "it waits");
        waiter.await
    };
    let (waited, ()) = tokio::join!(waiting, async {
        guard
            .run(tokio::time::sleep(SECOND))
            .await
            .expect("it is held");
        drop(guard);
    });
    assert_eq!(waited, None);
}

/// A claim of a tick waits for no lease under which it is made, in whatever way.
#[tokio::test(start_paused = true)]
async fn a_claim_under_a_lease_on_its_lock_is_refused_at_once() {
    let redlock = client(&faulty(3)).await;
    // It is refused before any node looks at it.
    let tick = Tick::from_millis(1_795_262_400_000).unwrap();
    let began = Instant::now();
    for wait in [Wait::Never, Wait::UpTo(60 * SECOND)] {
        let claim = async || {
            let options = ClaimOptions::new("pod").wait(wait);
            redlock
                .claim("key", tick, options)
                .await
                .unwrap_err()
                .kind()
        };
        let guard = redlock.acquire("key").await.unwrap();
        let kind = guard.run(claim()).await.unwrap();
        assert_eq!(kind, AcquireErrorKind::AlreadyHeld);
        drop(guard);
        let shared = redlock.acquire_shared("key").await.unwrap();
        let kind = shared.run(claim()).await.unwrap();
        assert_eq!(kind, AcquireErrorKind::AlreadyHeld);
        drop(shared);
        let in_scope = async {
            let _guard = redlock.acquire("key").await.unwrap();
            claim().await
        };
        assert_eq!(redlock.scope(in_scope).await, AcquireErrorKind::AlreadyHeld);
    }
    assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_leaves_no_lease_behind() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    let work = guard.run(async { panic!("as it may") });
    let panicked = AssertUnwindSafe(work).catch_unwind().await;
    assert!(panicked.is_err());
    assert_eq!(
        redlock.try_acquire("key").await.unwrap_err().kind(),
        AcquireErrorKind::Contended,
        "this is not under the lease any more"
    );
}
