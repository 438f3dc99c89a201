//! The gap that a process leaves for others, by callers that wait for less than its length.

use std::{cell::Cell, time::Duration};

use futures_util::{future::join_all, poll};
use redlock_core::{AcquireOptions, Wait};
use tokio::time::{Instant, sleep};

use crate::paused_time::fixtures::{MS, SECOND, client, faulty};

/// Has two callers of a process take a key again and again, none of which waits for longer than `wait`; returns for how long
/// another process waits for it on average.
async fn beside_callers_that_wait(wait: Duration) -> Duration {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let is_done = Cell::new(false);
    let busy = join_all((0..2).map(|_| async {
        let options = AcquireOptions::new().wait(Wait::UpTo(wait));
        while !is_done.get() {
            if let Ok(guard) = redlock.acquire_with("key", options.clone()).await {
                sleep(15 * MS).await;
                drop(guard);
            }
        }
    }));
    let patient = async {
        let start = Instant::now();
        for _ in 0..10 {
            let options = AcquireOptions::new().wait(Wait::UpTo(600 * SECOND));
            let guard = other.acquire_with("key", options).await;
            drop(guard.expect("its turn comes"));
            sleep(10 * MS).await;
        }
        is_done.set(true);
        start.elapsed() / 10
    };
    let (_, average) = tokio::join!(busy, patient);
    average
}

// Shows: T6.11.
#[tokio::test(start_paused = true)]
async fn callers_that_wait_for_less_than_the_gap_leave_it_in_parts() {
    for wait in [5, 20, 30] {
        let average = beside_callers_that_wait(wait * MS).await;
        // Chance decides when it meets a gap.
        assert!(average < 5 * SECOND, "{average:?} beside {wait} ms");
    }
}

// Shows: T6.9.
#[tokio::test(start_paused = true)]
async fn a_gap_is_left_within_the_wait_and_not_behind_it() {
    for (leaves, wins) in [(260, 285), (290, 300), (299, 300)] {
        let nodes = faulty(3);
        let redlock = client(&nodes).await;
        let guard = redlock.acquire("key").await.unwrap();
        let start = Instant::now();
        let options = AcquireOptions::new().wait(Wait::UpTo(300 * MS));
        let mut waiting = Box::pin(redlock.acquire_with("key", options));
        assert!(poll!(waiting.as_mut()).is_pending());
        sleep(leaves * MS).await;
        drop(guard);
        drop(waiting.await.unwrap());
        let won = start.elapsed();
        assert!(won >= wins * MS && won <= (wins + 2) * MS, "{won:?}");
    }
}
