//! Shared leases, in paused time: readers together, writers alone, and no caller waits for good.

mod downgrade;
mod joining;
mod upgrade;

use std::time::Duration;

use redlock_core::{AcquireErrorKind, AcquireOptions, Mode, Redlock, Wait};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::paused_time::fixtures::{FaultyNode, MS, SECOND, client, faulty, soon};

fn at_once() -> AcquireOptions {
    AcquireOptions::new().wait(Wait::Never)
}

fn for_long() -> AcquireOptions {
    AcquireOptions::new().wait(Wait::UpTo(60 * SECOND))
}

/// Returns the error of one exclusive attempt at the key, if it fails.
async fn try_alone(redlock: &Redlock) -> Option<AcquireErrorKind> {
    let tried = redlock.try_acquire("a").await;
    tried.err().map(|error| error.kind())
}

/// Starts a caller that waits.
fn starts<F>(caller: F) -> JoinSet<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut callers = JoinSet::new();
    callers.spawn(caller);
    callers
}

/// Returns what the caller comes to.
async fn ends<T: 'static>(mut callers: JoinSet<T>) -> T {
    let ended = soon(callers.join_next()).await.expect("there is one");
    ended.expect("it does not panic")
}

fn requests(nodes: &[FaultyNode]) -> usize {
    nodes.iter().map(FaultyNode::requests).sum()
}

/// Readers of four processes come all the time, and one that writes waits for those 10 ms in which they join, for the
/// readers that are there, and for its next attempt.
// Shows: R4.8.
#[tokio::test(start_paused = true)]
async fn s26_who_writes_waits_for_the_readers_that_are_there_and_for_no_others() {
    const READ: Duration = Duration::from_millis(100);
    let nodes = faulty(3);
    let mut readers = JoinSet::new();
    for _ in 0..4 {
        let replica = client(&nodes).await;
        for reader in 0..16 {
            let replica = replica.clone();
            readers.spawn(async move {
                sleep(reader * 7 * MS).await;
                loop {
                    let guard = replica.acquire_with("a", for_long().shared()).await;
                    let guard = guard.unwrap();
                    sleep(READ).await;
                    assert!(guard.is_held());
                    drop(guard);
                    sleep(MS).await;
                }
            });
        }
    }
    sleep(SECOND).await;
    let writer = client(&nodes).await;
    for _ in 0..20 {
        let began = Instant::now();
        let guard = writer.acquire_with("a", for_long()).await.unwrap();
        let waited = began.elapsed();
        assert!(waited <= READ + 10 * MS + 110 * MS, "{waited:?}");
        sleep(5 * MS).await;
        drop(guard);
        sleep(150 * MS).await;
    }
    // Readers go on too.
    let began = Instant::now();
    drop(writer.acquire_with("a", for_long().shared()).await.unwrap());
    assert!(began.elapsed() < SECOND);
    readers.shutdown().await;
}

// Shows: R4.8.
#[tokio::test(start_paused = true)]
async fn readers_of_a_process_wait_behind_its_writer() {
    let redlock = client(&faulty(3)).await;
    let reader = redlock.acquire_shared("a").await.unwrap();
    let (writes, reads) = (redlock.clone(), redlock.clone());
    let writer = starts(async move { writes.acquire_with("a", for_long()).await.unwrap() });
    sleep(MS).await;
    let mut late = starts(async move {
        let guard = reads.acquire_with("a", for_long().shared()).await.unwrap();
        guard.token()
    });
    sleep(5 * SECOND).await;
    assert!(late.try_join_next().is_none(), "it came after the writer");
    drop(reader);
    let alone = ends(writer).await;
    let token = alone.token();
    drop(alone);
    assert!(ends(late).await > token);
}

#[tokio::test(start_paused = true)]
async fn a_shared_hold_is_not_enough_for_who_needs_it_alone() {
    let redlock = client(&faulty(3)).await;
    let work = async {
        let reader = redlock.acquire_shared("a").await.unwrap();
        let again = redlock.acquire_shared("a").await.unwrap();
        assert_eq!(again.token(), reader.token());
        let refused = redlock.acquire("a").await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::AlreadyHeld);
        let told = refused.to_string();
        assert!(told.contains("acquire it alone from the start"), "{told}");
        drop((reader, again));
        let alone = redlock.acquire("a").await.unwrap();
        let reads = redlock.acquire_shared("a").await.unwrap();
        assert_eq!(
            (reads.mode(), reads.token()),
            (Mode::Exclusive, alone.token())
        );
    };
    soon(redlock.scope(work)).await;
    let slots = redlock.slots("reports", 2).unwrap();
    let refused = slots.acquire_with(at_once().shared()).await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Misuse);
}
