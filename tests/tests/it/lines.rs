//! Callers of several clients wait in line for one key, on real servers.

use std::time::Duration;

use redlock_core::{AcquireOptions, Fairness, Redlock, Wait, node::RedisNode};
use redlock_sandbox::ServerOptions;
use redlock_tests::{Nodes, client, now, within};
use tokio::{sync::mpsc, task::JoinSet, time::sleep};

const TTL: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(20);
const LINE: &str = "{redlock}:line:{redlock}:lock:a";

/// Returns how many callers wait in line at each node.
fn waiting(nodes: &Nodes) -> Vec<usize> {
    let lines = nodes.ask_all(&["GET", LINE]);
    lines.iter().map(|line| line.lines().count()).collect()
}

/// Has the callers come to the line one after the other; each says its number when it has the key.
async fn line_up(
    nodes: &Nodes,
    clients: &[Redlock],
) -> (JoinSet<()>, mpsc::UnboundedReceiver<usize>) {
    let (says, served) = mpsc::unbounded_channel();
    let mut callers = JoinSet::new();
    for (number, client) in clients.iter().enumerate() {
        let (client, says) = (client.clone(), says.clone());
        callers.spawn(async move {
            let patient = AcquireOptions::new().wait(Wait::UpTo(3 * SOON));
            let guard = client.acquire_with("a", patient).await.unwrap();
            says.send(number).unwrap();
            sleep(Duration::from_millis(20)).await;
            guard.release().await.unwrap();
        });
        let is_there = async {
            while waiting(nodes).iter().any(|waiting| *waiting <= number) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        within("it comes to the line", SOON, is_there).await;
        // Each client estimates the nodes' time by answers that may have been slow.
        sleep(Duration::from_millis(300)).await;
    }
    (callers, served)
}

async fn clients(urls: impl IntoIterator<Item = String> + Clone, count: usize) -> Vec<Redlock> {
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(client(urls.clone(), TTL).await);
    }
    clients
}

async fn end(callers: JoinSet<()>, mut served: mpsc::UnboundedReceiver<usize>) -> Vec<usize> {
    within("all are served", SOON, callers.join_all()).await;
    let mut order = Vec::new();
    while let Some(number) = served.recv().await {
        order.push(number);
    }
    order
}

// Shows: R9.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_are_served_in_the_order_in_which_they_came() {
    let nodes = Nodes::start(5);
    let holder = client(nodes.urls(), TTL).await;
    let held = holder.acquire("a").await.unwrap();
    let clients = clients(nodes.urls(), 6).await;
    let (callers, served) = line_up(&nodes, &clients).await;
    held.release().await.unwrap();
    assert_eq!(end(callers, served).await, [0, 1, 2, 3, 4, 5]);
    // The line goes with the last of them.
    assert_eq!(waiting(&nodes), [0; 5]);
}

// Shows: R9.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_strict_fairness_a_caller_behind_its_own_process_keeps_its_place() {
    let nodes = Nodes::start(5);
    let clients = clients(nodes.urls(), 2).await;
    let fair = AcquireOptions::new()
        .wait(Wait::UpTo(3 * SOON))
        .fairness(Fairness::Strict);
    for client in &clients {
        // From now on it hears of its turns.
        drop(client.acquire_with("a", fair.clone()).await.unwrap());
        sleep(Duration::from_millis(500)).await;
    }
    let held = clients[0].acquire_with("a", fair.clone()).await.unwrap();
    let (says, mut served) = mpsc::unbounded_channel();
    let mut callers = JoinSet::new();
    for (number, client) in clients.iter().enumerate() {
        let (client, fair, says) = (client.clone(), fair.clone(), says.clone());
        callers.spawn(async move {
            let guard = client.acquire_with("a", fair).await.unwrap();
            says.send(number).unwrap();
            sleep(Duration::from_millis(20)).await;
            guard.release().await.unwrap();
        });
        sleep(Duration::from_millis(500)).await;
    }
    held.release().await.unwrap();
    within("all are served", SOON, callers.join_all()).await;
    assert_eq!(
        [served.recv().await, served.recv().await],
        [Some(0), Some(1)]
    );
}

// Shows: R9.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_is_cut_costs_time_only() {
    let nodes = Nodes::start(3);
    let holder = client(nodes.urls(), TTL).await;
    let held = holder.acquire("a").await.unwrap();
    let clients = clients(nodes.urls(), 4).await;
    let (callers, served) = line_up(&nodes, &clients).await;
    let before = now();
    let cut = nodes.ask_all(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert!(cut.iter().all(|cut| *cut != "0"), "{cut:?}");
    held.release().await.unwrap();
    let mut order = end(callers, served).await;
    let took = now().saturating_sub(before);
    assert!(took < TTL, "{took:?}");
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_may_not_subscribe_are_served_beside_those_that_may() {
    let nodes = Nodes::start(3);
    let rights = RedisNode::RIGHTS.split(' ');
    let user = [
        "ACL",
        "SETUSER",
        "lock",
        "on",
        ">sesame",
        "~{redlock}:*",
        "-@all",
    ];
    let user: Vec<&str> = user.into_iter().chain(rights).collect();
    nodes.ask_all(&user);
    let urls = (0..3).map(|node| format!("redis://lock:sesame@{}", nodes[node].address()));
    let barred: Vec<String> = urls.collect();
    let holder = client(nodes.urls(), TTL).await;
    let held = holder.acquire("a").await.unwrap();
    let in_line = clients(nodes.urls(), 2).await;
    let (mut callers, served) = line_up(&nodes, &in_line).await;
    for client in clients(barred, 2).await {
        callers.spawn(async move {
            let patient = AcquireOptions::new().wait(Wait::UpTo(3 * SOON));
            drop(client.acquire_with("a", patient).await.unwrap());
        });
    }
    sleep(Duration::from_millis(300)).await;
    held.release().await.unwrap();
    assert_eq!(end(callers, served).await, [0, 1]);
}

/// Returns how often callers of three clients hold a key for a moment, one after the other.
async fn holds(urls: Vec<String>) -> u32 {
    let mut callers = JoinSet::new();
    for client in clients(urls, 3).await {
        callers.spawn(async move {
            let (end, mut holds) = (now() + Duration::from_secs(5), 0);
            while now() < end {
                let patient = AcquireOptions::new().wait(Wait::UpTo(SOON));
                let guard = client.acquire_with("a", patient).await.unwrap();
                holds += 1;
                sleep(Duration::from_millis(3)).await;
                drop(guard.release().await);
            }
            client.close().await;
            holds
        });
    }
    within("the callers", 2 * SOON, callers.join_all())
        .await
        .iter()
        .sum()
}

/// A client whose messages no node can publish would wait for these.
// Shows: R9.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_may_not_publish_are_as_fast_as_those_without_lines() {
    let nodes = Nodes::start(3);
    let mut counts = Vec::new();
    for without in [&["-publish", "-subscribe"][..], &["-publish"]] {
        let user = [
            "ACL", "SETUSER", "lock", "reset", "on", ">sesame", "~*", "&*", "+@all",
        ];
        let user: Vec<&str> = user.iter().chain(without).copied().collect();
        nodes.ask_all(&user);
        let urls = (0..3).map(|node| format!("redis://lock:sesame@{}", nodes[node].address()));
        counts.push(holds(urls.collect()).await);
    }
    let renamed = ServerOptions::default().argument("--rename-command");
    let renamed = Nodes::start_with(3, &renamed.argument("PUBLISH").argument("HIDDEN"));
    counts.push(holds(renamed.urls()).await);
    println!("holds without both, without publish, and with PUBLISH renamed: {counts:?}");
    assert!(
        counts.iter().all(|count| 2 * count >= counts[0]),
        "{counts:?}"
    );
}
