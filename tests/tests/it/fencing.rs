//! Fencing tokens grow with every lease, whatever becomes of nodes and processes.

use std::{collections::BTreeMap, time::Duration};

use redlock_tests::{
    ClientProcess, Connect, History, Load, LoadSummary, Nodes, Work, client, voting,
};

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const FENCE: &str = "{redlock}:counters";
const TTL: Duration = Duration::from_secs(10);

// Shows: T3.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn s22_tokens_of_two_processes_grow_while_masters_lose_their_counters() {
    let mut nodes = Nodes::start(5);
    let ttl = Duration::from_millis(1_500);
    let connect = Connect {
        max_ttl: ttl,
        ..Connect::to(nodes.urls(), ttl)
    };
    let operator = connect.client().await;
    // So far ahead of the clock that it cannot stand in for what is forgotten.
    nodes.ask_all(&["ZADD", FENCE, "5000000000000000", "floor"]);
    let history = History::new();
    let clients = ["one", "two"].map(|name| {
        let load = Load {
            history: history.file(name),
            connect: Connect {
                vouches: false,
                ..connect.clone()
            },
            tasks: 16,
            keys: 3,
            slots: 0,
            shared_percent: 0,
            acquisitions: 2_000,
            at_least: Duration::from_secs(10),
            at_most: Duration::from_secs(60),
            wait: Duration::from_secs(10),
            hold: Duration::from_millis(2),
            rest: Duration::from_millis(20),
            cancelled_percent: 10,
        };
        ClientProcess::start(CLIENT, &Work::Load(load))
    });
    // Each in turn: the counters of all five are lost once, and of no majority at a time.
    for node in 0..5 {
        nodes[node].restart().unwrap();
        voting(&operator, 4, TTL).await;
        // Until its quarantine is over and it was seeded.
        voting(&operator, 5, TTL).await;
    }
    for client in clients {
        let summary: LoadSummary = client.finish(Duration::from_secs(90)).await;
        eprintln!("{summary:?}");
        assert!(summary.failed.is_empty(), "{summary:?}");
    }
    // It checks the tokens too.
    let holds = history.assert_exclusive();
    let mut leases: BTreeMap<(&str, u32), usize> = BTreeMap::new();
    for hold in &holds {
        *leases.entry((&hold.key, hold.owner.0)).or_default() += 1;
    }
    println!("{} leases, {leases:?}", holds.len());
    assert!(holds.len() > 3_000 && leases.len() == 6, "{leases:?}");
}

// Shows: T3.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s22_a_token_that_one_node_has_alone_is_stored_on_a_majority_before_it_is_handed_out() {
    let nodes = Nodes::start(3);
    // The vote of each pair of nodes in turn, of which the first is ahead of the clock, and of the others.
    let mut ahead = 5_000_000_000_000_000_u64;
    let mut newest = 0;
    for [first, second, absent] in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
        ahead += 1_000;
        nodes.ask(first, &["ZADD", FENCE, &ahead.to_string(), "floor"]);
        let before = token_of(&nodes, &[first, second], absent).await;
        assert!(before > ahead, "{before} after {ahead}");
        assert!(before > newest, "{before} after {newest}");
        // The next holder has a vote of the second, and none of the first.
        newest = token_of(&nodes, &[second, absent], first).await;
        println!("token {before}, and {newest} for the next holder, whose nodes were behind");
        assert!(newest > before, "{newest} after {before}");
    }
}

/// The token of a lease that these two nodes give to a client that knows nothing, while one hangs.
async fn token_of(nodes: &Nodes, votes: &[usize; 2], hung: usize) -> u64 {
    let fresh = client(nodes.urls(), TTL).await;
    voting(&fresh, 3, TTL).await;
    nodes.freeze(hung..hung + 1);
    let guard = fresh.try_acquire("a").await.unwrap();
    let token = guard.token().get();
    for node in votes {
        let counters = nodes.ask(*node, &["EVAL", GREATEST, "1", FENCE]);
        let counter: u64 = counters.parse().unwrap();
        assert!(counter >= token, "node {node}: {counter} for {token}");
    }
    guard.release().await.unwrap();
    nodes.thaw(hung..hung + 1);
    nodes.become_empty(TTL).await;
    fresh.close().await;
    token
}

const GREATEST: &str = "return redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2] or '0'";
