//! Keys that are used once leave nothing: neither on the nodes nor in the client.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, ops::Range, time::Duration};

use redlock_core::{MemoryNode, Redlock, ReleaseErrorKind};
use redlock_tests::{Nodes, client, eventually, now, polled};
use tokio::task::JoinSet;

const TTL: Duration = Duration::from_secs(5);
/// With these, whatever grows to a bound of its own has grown: queues, buffers, counters.
const WARM: u32 = 20_000;
/// Whatever is kept of a key is more than 32 bytes, as its name is: 40,000 of them are seen as well as a million.
const KEYS: u32 = WARM + 40_000;
const LEAST_LEAK: u64 = 32 * (KEYS - WARM) as u64;
/// What is kept of a key is there in each round; what buffers of a busy machine grow by is not.
const ROUNDS: u32 = 10;

/// Acquires and releases each of these keys once, with many tasks at a time; some guards are dropped, and some
/// callers go away.
async fn use_once(redlock: &Redlock, keys: Range<u32>) {
    let mut running = JoinSet::new();
    for task in 0..TASKS {
        let (redlock, keys) = (redlock.clone(), keys.clone());
        running.spawn(async move {
            for key in keys.filter(|key| key % TASKS == task) {
                let acquire = redlock.acquire(format!("order:{key}"));
                match key / TASKS % 4 {
                    0 => drop(polled(acquire, 1).await),
                    1 => drop(acquire.await.unwrap()),
                    _ => match acquire.await.unwrap().release().await {
                        Ok(()) => {}
                        // The nodes are busy: that the key goes is seen by what stays on them.
                        Err(error) => assert_eq!(error.kind(), ReleaseErrorKind::Unconfirmed),
                    },
                }
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}

const TASKS: u32 = 64;

/// The memory of this process, in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() * 1_024
}

/// The memory that a server uses for its data, in bytes.
fn used(nodes: &Nodes, node: usize) -> u64 {
    let info = nodes.ask(node, &["INFO", "memory"]);
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("used_memory_dataset:"));
    line.unwrap().parse().unwrap()
}

// One test, because memory is counted for the whole process.
// Shows: T5.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l09_keys_that_are_used_once_leave_no_memory_behind() {
    let nodes = Nodes::start(3);
    let redlock = client(nodes.urls(), TTL).await;
    use_once(&redlock, 0..WARM).await;
    // What stays is the mark and the counters.
    let sizes = || nodes.ask_all(&["DBSIZE"]);
    let flat = |sizes: &Vec<String>| sizes.iter().all(|size| size == "2");
    eventually("only the node's own keys stay", TTL * 4, sizes, flat).await;
    let started = now();
    let (mut warm, mut warm_node, mut grown, mut grown_node) = (0, 0, u64::MAX, u64::MAX);
    for round in 0..ROUNDS {
        if grown.max(grown_node) < LEAST_LEAK {
            break;
        }
        (warm, warm_node) = (resident(), used(&nodes, 0));
        use_once(&redlock, WARM + round * KEYS..KEYS + round * KEYS).await;
        eventually("only the node's own keys stay", TTL * 4, sizes, flat).await;
        grown = resident().saturating_sub(warm);
        grown_node = used(&nodes, 0).saturating_sub(warm_node);
    }
    let took = now() - started;
    let keys = KEYS - WARM;
    println!("servers: {keys} keys in {took:?}: {grown} bytes more here, {grown_node} on a node");
    assert!(grown < LEAST_LEAK, "{grown} bytes of {warm} in the client");
    assert!(
        grown_node < LEAST_LEAK,
        "{grown_node} bytes of {warm_node} on a node"
    );
    let counters = nodes.ask(0, &["ZCARD", "{redlock}:counters"]);
    // Of 1,024 shards, and two words about them.
    assert!(counters.parse::<u32>().unwrap() <= 1_026, "{counters}");

    let memory: Vec<MemoryNode> = (0..3).map(|_| MemoryNode::new()).collect();
    let redlock = client(memory, TTL).await;
    use_once(&redlock, 0..WARM).await;
    let (mut warm, mut grown) = (0, u64::MAX);
    for round in 0..ROUNDS {
        if grown < LEAST_LEAK {
            break;
        }
        warm = resident();
        let started = now();
        use_once(&redlock, WARM + round * KEYS..KEYS + round * KEYS).await;
        let took = now() - started;
        grown = resident().saturating_sub(warm);
        println!("memory: {keys} keys in {took:?}: {grown} bytes more");
    }
    assert!(
        grown < LEAST_LEAK,
        "{grown} bytes of {warm} in the client and its nodes"
    );
}
