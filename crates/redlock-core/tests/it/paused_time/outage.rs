//! Acquires without a majority, in paused time: they wait for another holder, and not for nodes that are gone.

use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use redlock_core::{
    AcquireErrorKind, AcquireOptions, ClaimOptions, MemoryNode, Redlock, Tick, Wait,
};
use tokio::time::{Instant, sleep};

use crate::paused_time::{
    fixtures::{FaultyNode, MS, SECOND, client, client_of, faulty},
    odd_node,
};

/// A day in 2026, at noon.
const NOON: u64 = 1_795_262_400_000;

/// Returns what becomes of an acquire, and how long it took.
async fn timed(redlock: &Redlock, key: &str) -> (Option<AcquireErrorKind>, Duration) {
    let began = Instant::now();
    let acquired = redlock.acquire(key).await;
    (acquired.err().map(|error| error.kind()), began.elapsed())
}

fn stop(nodes: &[FaultyNode]) {
    nodes.iter().for_each(|node| node.node.stop());
}

fn start(nodes: &[FaultyNode]) {
    nodes.iter().for_each(|node| node.node.start());
}

// Shows: T6.9.
#[tokio::test(start_paused = true)]
async fn every_acquire_fails_at_once_in_an_outage_that_has_lasted() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    stop(&nodes[1..]);
    // Of one key and of many: what the first has waited, the others need not wait again.
    let all = (0..200).map(|key| {
        let redlock = redlock.clone();
        async move { timed(&redlock, &format!("key:{}", key / 2)).await }
    });
    for (failed, took) in join_all(all).await {
        assert_eq!(failed, Some(AcquireErrorKind::NoQuorum));
        assert!(took <= 2_200 * MS, "after {took:?}");
    }
    for key in 0..200 {
        let (failed, took) = timed(&redlock, &format!("key:{key}")).await;
        assert_eq!(
            (failed, took),
            (Some(AcquireErrorKind::NoQuorum), Duration::ZERO)
        );
    }
    start(&nodes);
    sleep(2 * SECOND).await;
    assert_eq!(timed(&redlock, "key:1").await, (None, Duration::ZERO));

    // The next outage is another one.
    stop(&nodes[..2]);
    let (failed, took) = timed(&redlock, "key:1").await;
    assert_eq!(failed, Some(AcquireErrorKind::NoQuorum));
    assert!(
        took >= 2 * SECOND && took <= 2_200 * MS,
        "it was given up after {took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_majority_that_is_back_within_a_second_fails_no_acquire() {
    for away in [300 * MS, SECOND] {
        let nodes = faulty(5);
        let redlock = client(&nodes).await;
        let began = Instant::now();
        stop(&nodes);
        let all = (0..50).map(|key| {
            let redlock = redlock.clone();
            async move {
                sleep(away * key / 50).await;
                redlock.acquire(format!("key:{key}").as_str()).await
            }
        });
        let (all, ()) = tokio::join!(join_all(all), async {
            sleep(away).await;
            start(&nodes);
        });
        for acquired in all {
            drop(acquired.expect("the nodes are back"));
        }
        assert!(began.elapsed() < 2 * SECOND, "after {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn the_patience_with_an_outage_is_a_setting() {
    let nodes = faulty(3);
    let hasty = client_of(&nodes).quorum_wait(Duration::ZERO);
    let hasty = hasty.build().await.unwrap();
    stop(&nodes);
    assert_eq!(
        timed(&hasty, "key").await,
        (Some(AcquireErrorKind::NoQuorum), Duration::ZERO)
    );
    let began = Instant::now();
    let options = AcquireOptions::new().quorum_wait(3 * SECOND);
    let error = hasty.acquire_with("key", options).await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::NoQuorum);
    assert!(
        began.elapsed() >= 3 * SECOND && began.elapsed() <= 3_200 * MS,
        "after {:?}",
        began.elapsed()
    );
    let began = Instant::now();
    let options = AcquireOptions::new()
        .quorum_wait(60 * SECOND)
        .wait(Wait::UpTo(4 * SECOND));
    hasty.acquire_with("key", options).await.unwrap_err();
    assert!(
        began.elapsed() <= 4_501 * MS,
        "the wait is the longest, and it took {:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn nodes_that_need_longer_than_the_wait_fail_an_acquire_at_once() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    nodes[..2].iter().for_each(|node| node.node.clear());
    // The first acquire is how this client learns of it.
    for _ in 0..3 {
        let began = Instant::now();
        let error = redlock.acquire("key").await.unwrap_err();
        assert_eq!(error.kind(), AcquireErrorKind::Quarantined, "{error}");
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(error.ready_in().is_some_and(|ready| ready > 5 * SECOND));
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_vote_within_the_wait_are_waited_for() {
    let nodes = faulty(3);
    let redlock = client_of(&nodes).ttl(SECOND).max_ttl(3 * SECOND);
    let redlock = redlock.build().await.unwrap();
    nodes[..2].iter().for_each(|node| node.node.clear());
    let (failed, took) = timed(&redlock, "key").await;
    assert_eq!(failed, None);
    assert!(
        took >= 3 * SECOND && took <= 4 * SECOND,
        "it was won after {took:?}"
    );
}

/// A node that is down beside one in quarantine may be back in a moment.
#[tokio::test(start_paused = true)]
async fn a_blip_beside_a_quarantine_fails_no_acquire() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    nodes[0].node.clear();
    drop(redlock.acquire("key").await.expect("two vote"));
    sleep(10 * SECOND).await;
    stop(&nodes[1..2]);
    let (acquired, ()) = tokio::join!(redlock.acquire("key"), async {
        sleep(300 * MS).await;
        start(&nodes[1..2]);
    });
    drop(acquired.expect("two vote again"));
}

#[tokio::test(start_paused = true)]
async fn nodes_that_refuse_whatever_they_are_asked_are_not_waited_for_either() {
    let nodes = odd_node::odd(3, Duration::ZERO);
    let redlock = odd_node::client(&nodes).await;
    nodes.iter().for_each(|node| node.refuse.set(true));
    let (failed, took) = timed(&redlock, "key").await;
    assert_eq!(failed, Some(AcquireErrorKind::NoQuorum));
    assert!(took <= 2_200 * MS, "after {took:?}");
    // They are looked at meanwhile, and vote by what they say of themselves.
    sleep(20 * SECOND).await;
    let (failed, took) = timed(&redlock, "key").await;
    assert_eq!(failed, Some(AcquireErrorKind::NoQuorum));
    // Each is asked again at once for what it refused as a transaction.
    assert!(took <= 2 * MS, "after {took:?}");
    nodes.iter().for_each(|node| node.refuse.set(false));
    drop(redlock.acquire("key").await.expect("they grant"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_still_connects_is_waited_for() {
    let nodes = odd_node::odd(3, 700 * MS);
    let specs = nodes
        .iter()
        .map(|node| redlock_core::NodeConfig::other(node.clone()));
    let redlock = Redlock::builder().nodes(specs).virtual_time();
    let redlock = redlock.connect_lazily().build().await.unwrap();
    let (failed, took) = timed(&redlock, "key").await;
    assert_eq!(failed, None);
    assert!(took <= SECOND, "after {took:?}");
}

#[tokio::test(start_paused = true)]
async fn without_patience_with_outages_a_client_that_still_connects_is_waited_for_all_the_same() {
    let nodes = odd_node::odd(3, 700 * MS);
    let specs = nodes
        .iter()
        .map(|node| redlock_core::NodeConfig::other(node.clone()));
    let redlock = Redlock::builder().nodes(specs).virtual_time();
    let redlock = redlock.quorum_wait(Duration::ZERO).connect_lazily();
    let redlock = redlock.build().await.unwrap();
    let (failed, took) = timed(&redlock, "key").await;
    assert_eq!(failed, None);
    assert!(took <= SECOND, "after {took:?}");

    // Connections that cannot be made are an outage.
    let nodes = faulty(3);
    stop(&nodes);
    let hasty = client_of(&nodes).quorum_wait(Duration::ZERO);
    let hasty = hasty.connect_lazily().build().await.unwrap();
    let (failed, took) = timed(&hasty, "key").await;
    assert_eq!(failed, Some(AcquireErrorKind::NoQuorum));
    assert!(took <= 1_200 * MS, "after {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_claim_bears_with_an_outage_for_its_whole_wait() {
    let nodes = faulty(3);
    let noon = SystemTime::UNIX_EPOCH + Duration::from_millis(NOON);
    nodes.iter().for_each(|node| node.node.set_clock(noon));
    let redlock = client(&nodes).await;
    stop(&nodes);
    let tick = Tick::from_millis(NOON).expect("it is this century");
    let options = ClaimOptions::new("pod")
        .start_within(60 * SECOND)
        .wait(Wait::UpTo(10 * SECOND));
    let (outcome, ()) = tokio::join!(redlock.claim("job", tick, options), async {
        sleep(6 * SECOND).await;
        start(&nodes);
    });
    assert!(outcome.expect("the nodes are back").won().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_another_holder_outlasts_an_outage_in_between() {
    let nodes: Vec<MemoryNode> = (0..3).map(|_| MemoryNode::new()).collect();
    let client = || {
        let builder = Redlock::builder().nodes(nodes.clone()).virtual_time();
        builder.build()
    };
    let (holder, waiter) = (client().await.unwrap(), client().await.unwrap());
    let guard = holder.acquire("key").await.unwrap();
    let patient = AcquireOptions::new().wait(Wait::UpTo(60 * SECOND));
    let (acquired, ()) = tokio::join!(waiter.acquire_with("key", patient), async {
        for _ in 0..3 {
            // Long enough to be connected again, and to ask.
            sleep(1_500 * MS).await;
            nodes.iter().for_each(MemoryNode::stop);
            sleep(500 * MS).await;
            nodes.iter().for_each(MemoryNode::start);
        }
        sleep(900 * MS).await;
        guard.release().await.unwrap();
    });
    drop(acquired.expect("the holder is done in time"));
}
