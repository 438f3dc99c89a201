//! A look at a key: what a majority says, and that nothing changes by it.

use redlock_core::{AcquireOptions, Holder, MemoryNode};
use tokio::{task::JoinSet, time::Instant};

use crate::paused_time::fixtures::{
    Faults, FaultyNode, MS, SECOND, client, client_of, faulty, keys, soon, wide_client,
};

fn label(holder: Holder) -> Option<String> {
    match holder {
        Holder::Held { label, .. } => label.map(|label| label.to_string()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_names_the_holder_and_changes_no_key() {
    let nodes = faulty(5);
    let holder = client_of(&nodes).label("web-7").build().await.unwrap();
    let other = client(&nodes).await;
    assert_eq!(other.holder("key").await, Ok(Holder::Free));
    assert_eq!(keys(&nodes), [0; 5], "the look created no key");

    let options = AcquireOptions::new()
        .ttl(4 * SECOND)
        .renewal(redlock_core::Renewal::Manual);
    let guard = holder.acquire_with("key", options).await.unwrap();
    tokio::time::sleep(SECOND).await;
    let before = keys(&nodes);
    let Holder::Held {
        remaining, since, ..
    } = other.holder("key").await.unwrap()
    else {
        panic!("it is held")
    };
    assert_eq!(remaining, Some(3 * SECOND), "no look extends a key");
    assert!(since.is_some());
    assert_eq!(
        label(other.holder("key").await.unwrap()).as_deref(),
        Some("web-7")
    );
    assert_eq!(keys(&nodes), before);
    assert!(guard.is_held());
    guard.release().await.unwrap();
    assert_eq!(other.holder("key").await, Ok(Holder::Free));
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_nothing_is_known() {
    let nodes = faulty(5);
    let redlock = wide_client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    for node in &nodes[..2] {
        node.set(Faults::BLACK_HOLE);
    }
    let held = soon(redlock.holder("key")).await.unwrap();
    assert!(matches!(held, Holder::Held { .. }), "{held:?}");
    nodes[2].set(Faults::BLACK_HOLE);
    assert_eq!(soon(redlock.holder("key")).await, Ok(Holder::Unknown));
    assert_eq!(soon(redlock.holder("free")).await, Ok(Holder::Unknown));
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_forgotten_does_not_call_a_key_free() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let guard = redlock.acquire("key").await.unwrap();
    // The look before has a connection to each node, and the restart leaves it usable.
    assert!(matches!(other.holder("key").await, Ok(Holder::Held { .. })));
    nodes[0].node.clear();
    nodes[1].node.clear();
    assert_eq!(other.holder("key").await, Ok(Holder::Unknown));
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_shares_a_key_is_named() {
    let nodes = faulty(3);
    let reader = client_of(&nodes).label("reader").build().await.unwrap();
    let guard = reader.acquire_shared("key").await.unwrap();
    assert_eq!(
        label(reader.holder("key").await.unwrap()).as_deref(),
        Some("reader")
    );
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_has_expired_is_not_named_while_another_one_keeps_the_key() {
    let nodes = faulty(3);
    let crashed = client_of(&nodes).label("crashed").build().await.unwrap();
    let reader = client_of(&nodes).label("reader").build().await.unwrap();
    let for_time = |ttl| {
        let manual = redlock_core::Renewal::Manual;
        AcquireOptions::new().ttl(ttl).renewal(manual).shared()
    };
    // The order in which owners are named is random.
    for number in 0..10 {
        let key = format!("key:{number}");
        let left = crashed.acquire_with(&*key, for_time(SECOND)).await.unwrap();
        let kept = reader
            .acquire_with(&*key, for_time(4 * SECOND))
            .await
            .unwrap();
        assert!(label(reader.holder(&*key).await.unwrap()).is_some());
        tokio::time::sleep(2 * SECOND).await;
        let look = reader.holder(&*key).await.unwrap();
        assert_eq!(label(look).as_deref(), Some("reader"));
        let Holder::Held { remaining, .. } = look else {
            panic!("{look:?}")
        };
        assert_eq!(remaining, Some(2 * SECOND));
        drop((left, kept));
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_connects_again_to_a_node_that_was_down() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    assert_eq!(redlock.holder("key").await, Ok(Holder::Free));
    let node: &MemoryNode = &nodes[0].node;
    node.stop();
    assert_eq!(
        redlock.holder("key").await,
        Ok(Holder::Free),
        "two of three say so"
    );
    nodes[1].node.stop();
    assert_eq!(redlock.holder("key").await, Ok(Holder::Unknown));
    node.start();
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(redlock.holder("key").await, Ok(Holder::Free));
}

#[tokio::test(start_paused = true)]
async fn a_minority_that_hangs_delays_no_look() {
    let nodes = faulty(5);
    let redlock = wide_client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    for node in &nodes[..2] {
        node.set(Faults::BLACK_HOLE);
    }
    let begun = Instant::now();
    let held = redlock.holder("key").await.unwrap();
    assert!(matches!(held, Holder::Held { .. }), "{held:?}");
    assert_eq!(redlock.holder("free").await, Ok(Holder::Free));
    assert!(begun.elapsed() < MS, "{:?}", begun.elapsed());
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_look_waits_for_no_connection_to_a_node_that_is_down() {
    let nodes = faulty(3);
    let redlock = wide_client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    nodes[0].set(Faults::BLACK_HOLE);
    tokio::time::sleep(10 * SECOND).await;
    // The other two disagree, so that the third would decide.
    nodes[1].node.drop_locks();
    let begun = Instant::now();
    assert_eq!(redlock.holder("key").await, Ok(Holder::Unknown));
    assert!(begun.elapsed() < MS, "{:?}", begun.elapsed());
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn looks_that_end_early_leave_the_connections_to_the_next_ones() {
    let nodes = faulty(3);
    let redlock = wide_client(&nodes).await;
    assert_eq!(redlock.holder("key").await, Ok(Holder::Free));
    nodes[0].set(Faults::late_replies(20 * MS));
    assert_eq!(redlock.holder("key").await, Ok(Holder::Free));
    let connects = nodes[0].connects();
    for _ in 0..100 {
        assert_eq!(redlock.holder("key").await, Ok(Holder::Free));
    }
    assert_eq!(nodes[0].connects(), connects);
}

#[tokio::test(start_paused = true)]
async fn nodes_in_quarantine_name_no_holder_though_a_majority_has_the_key_of_one_attempt() {
    let nodes = faulty(3);
    let links: Vec<_> = nodes.iter().map(FaultyNode::by_another_link).collect();
    let (candidate, observer) = (client(&links).await, client(&nodes).await);
    // The keys of each attempt stay on the nodes for a while.
    for link in &links {
        link.set(Faults::late_replies(100 * MS));
    }
    for node in &nodes {
        node.node.clear();
    }
    tokio::time::sleep(SECOND).await;
    let before = keys(&nodes);
    let mut campaign = JoinSet::new();
    campaign.spawn(async move { candidate.acquire("key").await });
    let mut taken = 0;
    for _ in 0..100 {
        let looked = soon(observer.holder("key")).await;
        taken += usize::from(
            keys(&nodes)
                .iter()
                .zip(&before)
                .all(|(now, then)| now > then),
        );
        assert_eq!(looked, Ok(Holder::Unknown), "{taken}");
        tokio::time::sleep(10 * MS).await;
    }
    assert!(
        taken > 0,
        "all nodes had the key of an attempt at some look"
    );
}
