//! What becomes of a lease while it is held: healing, the longest hold, and the rest after a crash.

use std::time::Duration;

use redlock_core::{AcquireErrorKind, AcquireOptions, LossReason, Wait};
use redlock_tests::{
    ClientProcess, Connect, Event, History, HoldWork, Nodes, Work, client, eventually, now, within,
};

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const KEY: &str = "{redlock}:lock:a";
const FENCE: &str = "{redlock}:counters";
const SOON: Duration = Duration::from_secs(2);

// Shows: T1.9, T3.9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_one_node_lost_comes_back_with_the_next_renewal_and_counts_afterwards() {
    let ttl = Duration::from_secs(3);
    let mut nodes = Nodes::start(3);
    let redlock = client(nodes.urls(), ttl).await;
    let guard = redlock.acquire("a").await.unwrap();
    let keys = || nodes.ask_all(&["GET", KEY]);
    let owners = eventually("all have it", SOON, keys, |keys| {
        keys.iter().all(|k| !k.is_empty())
    });
    let owners = owners.await;
    nodes.ask(0, &["DEL", KEY, FENCE]);
    assert_ne!(keys(), owners);

    eventually("it is healed", ttl, keys, |keys| *keys == owners).await;
    let left = nodes.pttl(0, KEY).unwrap();
    assert!(left > ttl / 2 && left <= ttl, "{left:?}");
    // With the key comes what it has counted.
    let counters = nodes[0]
        .command(&["ZRANGE", FENCE, "0", "0", "WITHSCORES"])
        .unwrap();
    let counter = counters.as_array().unwrap()[1]
        .as_text()
        .unwrap()
        .parse::<u64>();
    assert!(counter.unwrap() >= guard.token().get(), "{counters:?}");

    // Without what was healed there is no majority any more.
    nodes.kill(2..3);
    for _ in 0..3 {
        let extension = within("an extension", SOON, guard.extend()).await;
        extension.unwrap();
    }
    let deadline = now() + guard.lease().remaining();
    eventually("the first deadline passes", ttl * 2, now, |now| {
        *now > deadline
    })
    .await;
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
    assert_eq!(nodes.pttl(0, KEY), None);
    assert_eq!(nodes.pttl(1, KEY), None);
}

// Shows: T2.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_ends_after_the_longest_hold_though_its_renewals_succeed() {
    let ttl = Duration::from_millis(900);
    let max_hold = ttl * 2;
    let nodes = Nodes::start(3);
    let redlock = client(nodes.urls(), ttl).await;
    let started = now();
    let options = AcquireOptions::new().max_hold(max_hold);
    let guard = redlock.acquire_with("a", options).await.unwrap();
    let acquired = now();
    let lease = guard.lease();
    let looks = async {
        while lease.is_held() {
            let until = now() + lease.remaining();
            assert!(until <= acquired + max_hold, "{:?}", until - acquired);
            tokio::time::sleep(ttl / 50).await;
        }
    };
    let end = async { tokio::join!(lease.lost(), looks) };
    let (reason, ()) = within("its end", max_hold * 2, end).await;
    let ended = now();
    assert_eq!(reason, LossReason::MaxHold);
    println!("held for {:?} of {max_hold:?}", ended - started);
    assert!(ended - started >= max_hold, "{:?}", ended - started);
    assert!(
        ended - acquired < max_hold + ttl / 2,
        "{:?}",
        ended - acquired
    );
    // It was renewed, for it lasted longer than its time to live, and it cannot be brought back.
    guard.extend().await.unwrap_err();
    drop(guard);
    nodes.become_empty(SOON).await;
}

// Shows: N2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_rests_after_a_holder_that_was_killed_and_not_after_a_release() {
    let (ttl, delay) = (Duration::from_millis(1_500), Duration::from_secs(2));
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), ttl).await;
    let options = AcquireOptions::new().lock_delay(delay);
    let history = History::new();
    let work = HoldWork {
        lock_delay: delay,
        ..HoldWork::new(history.file("holder"), Connect::to(nodes.urls(), ttl), "a")
    };
    let holder = ClientProcess::start(CLIENT, &Work::Hold(work));
    // Renewed once, so that it is the key of a renewal that rests.
    let first = || history.events().first().map(|event| event.until);
    let renewed = |first: &Option<Duration>| first.is_some_and(|first| now() > first);
    eventually("a renewal", ttl * 4, first, renewed).await;
    holder.kill();
    let killed = now();
    let until = |event: &Event| event.is_valid().then_some(event.until);
    let valid_until = history.events().iter().filter_map(until).max().unwrap();
    assert!(valid_until > killed, "killed while its lease was valid");

    let patient = AcquireOptions::new().wait(Wait::UpTo((ttl + delay) * 2));
    let guard = redlock.acquire_with("a", patient).await.unwrap();
    let rested = now().saturating_sub(valid_until);
    println!("free {rested:?} after the end of a lease with a delay of {delay:?}");
    assert!(rested >= delay, "{rested:?}");
    assert!(rested < delay + SOON, "{rested:?}");
    guard.release().await.unwrap();

    // A release needs no rest, and what is refused meanwhile is told of it.
    let other = client(nodes.urls(), ttl).await;
    let guard = redlock.acquire_with("b", options).await.unwrap();
    assert!(guard.lease().remaining() <= ttl);
    let refused = other.try_acquire("b").await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    assert!(refused.remaining() > Some(delay), "{refused}");
    guard.release().await.unwrap();
    nodes.become_empty(SOON).await;
    other
        .try_acquire("b")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}
