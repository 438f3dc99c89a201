//! A lease passes from one caller of a process to the next, in order, and other processes get their turn.

use std::time::Duration;

use redlock_core::{AcquireOptions, Redlock, Wait};
use redlock_tests::{
    ClientProcess, Connect, History, Load, Nodes, Random, Work, client, eventually, now, polled,
    wide_client, within,
};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const TTL: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(2);

/// Callers that come one after the other while the first holds the key, and what each gets: its number, and its
/// token.
async fn queue(redlock: &Redlock, callers: u64) -> Vec<(u64, u64)> {
    let first = redlock.acquire("a").await.unwrap();
    let mut waiting = JoinSet::new();
    for caller in 0..callers {
        let redlock = redlock.clone();
        let (in_line, is_in_line) = tokio::sync::oneshot::channel();
        waiting.spawn(async move {
            let mut acquire = Box::pin(redlock.acquire("a"));
            assert!(futures_util::poll!(acquire.as_mut()).is_pending());
            in_line.send(()).unwrap();
            let guard = acquire.await.unwrap();
            let got = (caller, guard.token().get());
            guard.release().await.unwrap();
            got
        });
        is_in_line.await.unwrap();
    }
    let mut got = vec![(callers, first.token().get())];
    first.release().await.unwrap();
    while let Some(next) = waiting.join_next().await {
        got.push(next.unwrap());
    }
    got.sort_by_key(|(_, token)| *token);
    got
}

// Shows: T3.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_a_process_follow_each_other_in_order_and_with_greater_tokens() {
    let nodes = Nodes::start(5);
    let redlock = wide_client(nodes.urls(), TTL).await;
    let before = nodes.grants(0);
    let got = within("all of them", TTL, queue(&redlock, 150)).await;
    let callers: Vec<u64> = got.iter().map(|(caller, _)| *caller).collect();
    let in_order: Vec<u64> = [150].into_iter().chain(0..150).collect();
    assert_eq!(callers, in_order);
    assert!(got.windows(2).all(|two| two[0].1 < two[1].1), "{got:?}");
    let grants = nodes.grants(0) - before;
    println!("151 leases by {grants} grants");
    // Each lease passes from caller to caller 63 times at most.
    assert!((3..75).contains(&grants), "151 leases by {grants} grants");
    nodes.become_empty(SOON).await;
}

// Shows: T6.11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_gets_its_turn_while_a_queue_never_ends() {
    let nodes = Nodes::start(5);
    let history = History::new();
    let load = Load {
        history: history.file("busy"),
        connect: Connect::to(nodes.urls(), TTL),
        tasks: 16,
        keys: 1,
        slots: 0,
        shared_percent: 0,
        acquisitions: 0,
        at_least: TTL * 6,
        at_most: TTL * 6,
        wait: TTL,
        hold: Duration::from_millis(2),
        rest: Duration::ZERO,
        cancelled_percent: 0,
    };
    let busy = ClientProcess::start(CLIENT, &Work::Load(load));
    let redlock = client(nodes.urls(), TTL).await;
    let events = || history.events().len();
    eventually("the other is busy", TTL, events, |events| *events > 100).await;
    let mut random = Random::new();
    let mut waits = Vec::new();
    for _ in 0..14 {
        // At any moment of the time for which it hands the key on.
        sleep(Duration::from_millis(100) + random.below_duration(SOON / 8)).await;
        let started = now();
        let guard = redlock.acquire_with("key-0", patient()).await.unwrap();
        waits.push(now() - started);
        guard.release().await.unwrap();
    }
    busy.kill();
    let holds = history.assert_exclusive().len();
    waits.sort_unstable();
    println!("{holds} holds of the busy process; we waited {waits:?}");
    assert!(holds > 500, "{holds} holds are no endless queue");
    // The other hands the key on for a quarter of a second at most.
    assert!(waits[7] < Duration::from_millis(900), "{waits:?}");
    assert!(waits[13] < TTL / 2, "{waits:?}");
}

fn patient() -> AcquireOptions {
    AcquireOptions::new().wait(Wait::UpTo(TTL))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_at_any_moment_of_a_hand_over_costs_nobody_the_lease() {
    let nodes = Nodes::start(3);
    let redlock = client(nodes.urls(), Duration::from_secs(30)).await;
    let mut random = Random::new();
    let mut newest = 0;
    let mut cut_short = 0;
    for round in 0..60 {
        let first = redlock.acquire("a").await.unwrap();
        let mut waiting = JoinSet::new();
        for _ in 0..4 {
            let redlock = redlock.clone();
            let (polls, limit) = (
                random.below(6),
                random.below_duration(Duration::from_millis(4)),
            );
            waiting.spawn(async move {
                let acquire = redlock.acquire("a");
                // By the number of polls, or by time.
                let guard = match polls {
                    0..4 => polled(acquire, polls).await,
                    _ => timeout(limit, acquire).await.ok(),
                };
                guard.is_some_and(|guard| guard.unwrap().lease().is_held())
            });
        }
        let mut last = JoinSet::new();
        let redlock_of_last = redlock.clone();
        last.spawn(async move {
            let guard = redlock_of_last.acquire("a").await.unwrap();
            assert!(guard.lease().is_held());
            let token = guard.token().get();
            guard.release().await.unwrap();
            token
        });
        sleep(random.below_duration(Duration::from_millis(3))).await;
        assert!(first.lease().is_held(), "round {round}");
        assert!(first.token().get() > newest);
        newest = first.token().get();
        drop(first);
        while let Some(held) = waiting.join_next().await {
            cut_short += u32::from(!held.unwrap());
        }
        let last = within("the last caller", SOON, last.join_next()).await;
        let last = last.unwrap().unwrap();
        assert!(last > newest, "round {round}: {last} after {newest}");
        newest = last;
        nodes.become_empty(SOON).await;
    }
    println!("{cut_short} of 240 were cut short");
    assert!(
        (20..240).contains(&cut_short),
        "{cut_short} of 240 were cut short"
    );
}
