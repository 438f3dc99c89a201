//! Acquires that ask a majority first, over real servers.

use std::time::Duration;

use redlock_core::{AcquireErrorKind, AcquireOptions, FanOut, LockGuard, Redlock, Renewal};
use redlock_tests::{Nodes, builder, client, eventually, for_as_long_as, within};
use tokio::time::{Instant, sleep};

const TTL: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(2);

async fn narrow(nodes: &Nodes) -> Redlock {
    let narrow = builder(nodes.urls(), TTL).fan_out(FanOut::Majority);
    let narrow = narrow.build().await.unwrap();
    narrow.dangerous_bless().await;
    narrow
}

// Shows: T6.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bare_majority_keeps_everybody_out() {
    let nodes = Nodes::start(5);
    let narrow = narrow(&nodes).await;
    let wide = client(nodes.urls(), TTL).await;
    for key in ["a", "b", "c", "d", "e"] {
        let options = AcquireOptions::new().renewal(Renewal::Manual);
        let guard = narrow.acquire_with(key, options).await.unwrap();
        assert_eq!(nodes.keys().len(), 3, "{:?}", nodes.keys());
        for other in [&narrow, &wide] {
            let refused = other.try_acquire(key).await.unwrap_err();
            assert!(
                matches!(refused.kind(), AcquireErrorKind::Contended),
                "{refused}"
            );
        }
        let token = guard.token();
        guard.release().await.unwrap();
        nodes.become_empty(SOON).await;
        let next = wide.acquire(key).await.unwrap();
        assert!(next.token() > token);
        next.release().await.unwrap();
        nodes.become_empty(SOON).await;
    }
}

// Shows: T6.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_lasts_outlives_nodes_that_were_asked_first() {
    let mut nodes = Nodes::start(5);
    let redlock = narrow(&nodes).await;
    let guard = redlock.acquire("order:42").await.unwrap();
    let everywhere = |keys: &Vec<String>| keys.len() == 5;
    eventually("all nodes have it", SOON, || nodes.keys(), everywhere).await;
    nodes.kill(0..2);
    guard.extend().await.unwrap();
    guard.release().await.unwrap();
}

// Shows: T6.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_for_whose_renewals_nodes_take_turns_stays_on_all_of_them_and_outlives_a_minority()
{
    let mut nodes = Nodes::start(5);
    let redlock = narrow(&nodes).await;
    let ttl = Duration::from_secs(3);
    let options = AcquireOptions::new().ttl(ttl);
    let guard = redlock.acquire_with("order:42", options).await.unwrap();
    let everywhere = |keys: &Vec<String>| keys.len() == 5;
    eventually("all nodes have it", SOON, || nodes.keys(), everywhere).await;
    for_as_long_as(2 * ttl, || {
        assert!(guard.is_held());
        assert_eq!(nodes.keys().len(), 5);
    })
    .await;
    nodes.freeze(0..1);
    nodes.kill(1..2);
    for_as_long_as(2 * ttl, || assert!(guard.is_held())).await;
    guard.extend().await.unwrap();
    guard.release().await.unwrap();
    nodes.thaw(0..1);
}

// Shows: T6.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l01_a_hung_and_a_dead_node_cost_those_that_ask_a_majority_first_little() {
    let mut nodes = Nodes::start(5);
    let redlock = narrow(&nodes).await;
    nodes.freeze(0..1);
    nodes.kill(1..2);
    let turns = async {
        for turn in 0..100 {
            let guard = redlock.acquire(format!("order:{turn}")).await.unwrap();
            guard.release().await.unwrap();
        }
    };
    // The hung node has half a second for each, if it is waited for.
    within("a hundred of them", 5 * SOON, turns).await;
    nodes.thaw(0..1);
}

/// How a node is lost, as a function of the servers.
type Fault = (&'static str, fn(&mut Nodes));

const FAULTS: [Fault; 4] = [
    ("killed and back without its data", |nodes| {
        nodes.kill(0..1);
        nodes[0].restart().unwrap();
    }),
    ("killed", |nodes| nodes.kill(0..1)),
    ("frozen", |nodes| nodes.freeze(0..1)),
    ("flushed", |nodes| {
        nodes.ask(0, &["FLUSHALL"]);
    }),
];

/// Takes leases for 300 ms, one after the other, and loses a node; returns how many leases a majority has extended since.
async fn outlive(count: usize, (what, strike): Fault) -> usize {
    let ttl = Duration::from_secs(3);
    let mut nodes = Nodes::start(count);
    let redlock = narrow(&nodes).await;
    let (mut guards, began) = (Vec::new(), Instant::now());
    while began.elapsed() < Duration::from_millis(300) {
        let options = AcquireOptions::new().ttl(ttl);
        let key = format!("order:{}", guards.len());
        let guard = redlock.acquire_with(key, options).await.unwrap();
        guards.push((Instant::now(), guard));
        // So that they are of every age, and not too many.
        sleep(Duration::from_millis(2)).await;
    }
    strike(&mut nodes);
    let struck = Instant::now();
    let not_extended = || {
        let since = struck.elapsed();
        let is_over = |guard: &LockGuard| guard.lease().remaining() + since > ttl;
        let lost = guards.iter().filter(|(_, guard)| !guard.is_held());
        let lost: Vec<_> = lost.map(|(won, _)| struck - *won).collect();
        let left = guards.iter().filter(|(_, guard)| !is_over(guard)).count();
        assert!(
            lost.is_empty(),
            "{count} nodes, one {what}: leases of these ages were lost: {lost:?}"
        );
        left
    };
    let what = format!("each lease is extended by the others, one of {count} nodes {what}");
    eventually(&what, 2 * ttl, not_extended, |left| *left == 0).await;
    guards.len()
}

async fn outlive_all(nodes: usize) {
    for fault in FAULTS {
        let leases = outlive(nodes, fault).await;
        eprintln!("{leases} leases outlived one of {nodes} nodes {}", fault.0);
    }
}

// Shows: T6.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_five_nodes_that_is_lost_in_the_first_300_ms_ends_no_lease() {
    outlive_all(5).await;
}

// Shows: T6.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_three_nodes_that_is_lost_in_the_first_300_ms_ends_no_lease() {
    outlive_all(3).await;
}
