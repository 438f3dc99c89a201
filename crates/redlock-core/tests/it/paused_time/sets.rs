//! Leases on several keys, in paused time.

use redlock_core::{AcquireError, AcquireErrorKind, AcquireOptions, Redlock, ResourceKeys, Wait};
use tokio::{task::JoinSet, time::Instant};

use crate::paused_time::fixtures::{Faults, FaultyNode, MS, SECOND, client, faulty};

fn at_once() -> AcquireOptions {
    AcquireOptions::new().wait(Wait::Never)
}

async fn try_all(redlock: &Redlock, keys: &[&str]) -> Result<(), AcquireErrorKind> {
    let keys = ResourceKeys::new(keys.iter().copied()).expect("they are a set");
    let acquired = redlock.acquire_all_with(keys, at_once()).await;
    acquired.map(drop).map_err(|error| error.kind())
}

#[tokio::test(start_paused = true)]
async fn a_set_is_held_by_each_of_its_keys() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let guard = redlock.acquire_all(["b", "a", "b"]).await.unwrap();
    let names: Vec<&str> = guard.keys().iter().map(|key| key.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    for taken in [&["a"][..], &["b"], &["b", "c"], &["a", "b"]] {
        for client in [&redlock, &other] {
            let contended = try_all(client, taken).await;
            assert_eq!(contended, Err(AcquireErrorKind::Contended), "{taken:?}");
        }
    }
    assert_eq!(
        try_all(&other, &["c"]).await,
        Ok(()),
        "nothing of it was left"
    );
    guard.release().await.unwrap();
    assert_eq!(try_all(&other, &["a", "b", "c"]).await, Ok(()));
}

/// Each has the key that the other wants first.
// Shows: R3.5.
#[tokio::test(start_paused = true)]
async fn sets_in_different_orders_never_wait_for_each_other() {
    let nodes = faulty(3);
    let clients = [client(&nodes).await, client(&nodes).await];
    let orders = [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]];
    let mut tasks = JoinSet::new();
    for number in 0..12 {
        let redlock = clients[number % 2].clone();
        tasks.spawn(async move {
            let order = orders[number % 3].into_iter().take(2 + number % 2);
            let keys = ResourceKeys::new(order).unwrap();
            let options = AcquireOptions::new().wait(Wait::UpTo(60 * SECOND));
            let guard = redlock.acquire_all_with(keys, options).await.unwrap();
            tokio::time::sleep(10 * MS).await;
            guard.release().await.unwrap();
        });
    }
    let began = Instant::now();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert!(began.elapsed() < 30 * SECOND, "{:?}", began.elapsed());
}

/// The set waits for the second of its keys, and has none of them.
#[tokio::test(start_paused = true)]
async fn a_lease_is_not_left_to_a_set_that_still_waits() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let [a, b] = ["a", "b"].map(|key| redlock.acquire(key));
    let (a, b) = tokio::try_join!(a, b).unwrap();
    let mut tasks = JoinSet::new();
    let waiting = redlock.clone();
    tasks.spawn(async move { waiting.acquire_all(["a", "b"]).await });
    tokio::time::sleep(10 * MS).await;
    drop(a);
    tokio::time::sleep(10 * MS).await;
    let free = try_all(&other, &["a"]).await;
    assert_eq!(free, Ok(()), "another process may have it meanwhile");
    b.release().await.unwrap();
    let set = tasks.join_next().await.unwrap().unwrap();
    set.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_attempt_under_a_lease_waits_for_nobody_and_meets_no_circle() {
    let redlock = client(&faulty(3)).await;
    let [a, b] = ["a", "b"].map(|key| redlock.acquire(key));
    let (a, b) = tokio::try_join!(a, b).unwrap();
    let mut tasks = JoinSet::new();
    let waiting = redlock.clone();
    tasks.spawn(async move { a.run(waiting.acquire("b")).await.unwrap().map(drop) });
    tokio::time::sleep(10 * MS).await;
    let at_once = b.run(redlock.try_acquire("a")).await.unwrap();
    assert_eq!(at_once.unwrap_err().kind(), AcquireErrorKind::Contended);
    let waiting = b.run(redlock.acquire("a")).await.unwrap();
    assert_eq!(waiting.unwrap_err().kind(), AcquireErrorKind::Deadlock);
    drop(b);
    tasks.join_next().await.unwrap().unwrap().unwrap();
}

// Shows: R3.3.
#[tokio::test(start_paused = true)]
async fn nothing_of_a_set_is_left_when_its_acquire_is_dropped() {
    let nodes: Vec<FaultyNode> = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let slow = Faults::late_replies(200 * MS);
    nodes.iter().for_each(|node| node.set(slow));
    {
        let waits = redlock.acquire_all(["a", "b"]);
        let waited = tokio::time::timeout(50 * MS, waits).await;
        assert!(waited.is_err());
    }
    let keys = || nodes.iter().map(|node| node.node.keys()).sum::<usize>();
    assert_eq!(keys(), 6, "they were granted, and nobody has heard of it");
    tokio::time::sleep(SECOND).await;
    assert_eq!(keys(), 0);
    nodes.iter().for_each(FaultyNode::heal);

    let held = other.acquire("c").await.unwrap();
    {
        let waits = redlock.acquire_all(["a", "b", "c"]);
        let waited = tokio::time::timeout(300 * MS, waits).await;
        assert!(waited.is_err());
    }
    tokio::time::sleep(100 * MS).await;
    assert_eq!(try_all(&other, &["a", "b"]).await, Ok(()));
    assert_eq!(try_all(&redlock, &["a", "b"]).await, Ok(()));
    held.release().await.unwrap();
    assert_eq!(try_all(&redlock, &["a", "b", "c"]).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_set_is_refused_with_what_to_do() {
    let redlock = client(&faulty(3)).await;
    let none = redlock.acquire_all([""; 0]).await.unwrap_err();
    let many = redlock
        .acquire_all((0..17).map(|key| key.to_string()))
        .await;
    let bad = redlock.acquire_all(["a", "b\n"]).await.unwrap_err();
    for error in [none, many.unwrap_err(), bad] {
        assert_eq!(error.kind(), AcquireErrorKind::Misuse);
        let said = error.to_string();
        assert!(
            said.contains(": resource key") || said.contains("different ones"),
            "{said}"
        );
    }
    let within = redlock.acquire("a").await.unwrap();
    let own = within.run(redlock.acquire_all(["b", "a"])).await.unwrap();
    assert_eq!(own.unwrap_err().kind(), AcquireErrorKind::AlreadyHeld);
}

#[tokio::test]
async fn a_key_of_the_nodes_own_in_a_set_is_refused() {
    let builder = Redlock::builder()
        .in_memory_nodes(3)
        .expert(|expert| expert.verbatim_keys = true);
    let redlock = builder.build().await.unwrap();
    let refused: AcquireError = redlock
        .acquire_all(["a", "{redlock:verbatim}:mark"])
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Misuse);
    assert!(refused.to_string().contains("nodes' own"), "{refused}");
}
