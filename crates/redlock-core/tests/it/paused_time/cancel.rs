//! Futures that are dropped at every point where they can be.

use std::pin::pin;

use futures_util::poll;
use redlock_core::{AcquireOptions, Renewal};

use crate::paused_time::fixtures::{Faults, MS, SECOND, client, faulty, keys, settle};

/// Returns the ways in which the nodes can answer while a caller gives up.
fn ways() -> [Faults; 5] {
    let slow = Faults {
        request_delay: 5 * MS,
        reply_delay: 5 * MS,
        ..Faults::default()
    };
    [
        Faults::default(),
        slow,
        Faults {
            reply_delay: 50 * MS,
            ..slow
        },
        Faults::SILENT,
        Faults {
            cut_after_execution: true,
            ..slow
        },
    ]
}

// Shows: T5.1.
#[tokio::test(start_paused = true)]
async fn l03_an_acquire_dropped_at_any_moment_leaves_no_key() {
    for (way, faults) in ways().into_iter().enumerate() {
        for after in 0..40 {
            let nodes = faulty(3);
            let redlock = client(&nodes).await;
            // A minority behaves badly at most, so that the acquire may win at some point.
            nodes[after % 3].set(faults);
            nodes[(after + 1) % 3].set(ways()[1]);
            let acquire = redlock.acquire("key");
            // Time passes in steps too small for a whole round trip.
            drop(tokio::time::timeout(u32::try_from(after).unwrap() * MS / 2, acquire).await);
            nodes
                .iter()
                .for_each(crate::paused_time::fixtures::FaultyNode::heal);
            tokio::time::sleep(3 * SECOND).await;
            assert_eq!(
                keys(&nodes),
                [0; 3],
                "way {way}, dropped after {after} half milliseconds"
            );
            drop(
                redlock
                    .try_acquire("key")
                    .await
                    .expect("nobody is in the way"),
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn l03_an_acquire_dropped_after_any_number_of_polls_leaves_no_key() {
    for polls in 0..20 {
        let nodes = faulty(3);
        let redlock = client(&nodes).await;
        {
            let mut acquire = pin!(redlock.acquire("key"));
            for _ in 0..polls {
                if poll!(acquire.as_mut()).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        settle().await;
        assert_eq!(keys(&nodes), [0; 3], "dropped after {polls} polls");
        drop(
            redlock
                .try_acquire("key")
                .await
                .expect("nobody is in the way"),
        );
    }
}

#[tokio::test(start_paused = true)]
async fn l03_a_waiter_that_goes_away_asks_no_more() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let silent = AcquireOptions::new()
        .ttl(30 * SECOND)
        .renewal(Renewal::Manual);
    let held = other.acquire_with("key", silent).await.unwrap();
    for wait in 0..30 {
        let acquire = redlock.acquire("key");
        assert!(tokio::time::timeout(wait * 13 * MS, acquire).await.is_err());
    }
    settle().await;
    let asked = nodes[0].requests();
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(nodes[0].requests(), asked);
    drop(held);
    settle().await;
    assert_eq!(keys(&nodes), [0; 3]);
}

// Shows: T5.2.
#[tokio::test(start_paused = true)]
async fn l06_a_release_dropped_after_any_number_of_polls_is_made() {
    for polls in 0..6 {
        let nodes = faulty(3);
        let redlock = client(&nodes).await;
        let guard = redlock.acquire("key").await.unwrap();
        {
            let mut release = Box::pin(guard.release());
            for _ in 0..polls {
                if poll!(release.as_mut()).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        settle().await;
        assert_eq!(keys(&nodes), [0; 3], "dropped after {polls} polls");
    }
}

// Shows: T5.2.
#[tokio::test(start_paused = true)]
async fn work_that_panics_releases_the_lease() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let mut tasks = tokio::task::JoinSet::new();
    let client = redlock.clone();
    tasks.spawn(async move {
        let guard = client.acquire("key").await.unwrap();
        guard
            .run(async { panic!("the work went wrong") })
            .await
            .unwrap()
    });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    settle().await;
    assert_eq!(keys(&nodes), [0; 3]);
}
