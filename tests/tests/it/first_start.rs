//! Nodes that have no past: all at the first start, and a majority that has lost its counters.

use std::time::Duration;

use redlock_core::{AcquireErrorKind, AcquireOptions, NodeAnswer, NotAVote, Wait};
use redlock_tests::{Connect, Nodes, Proxy, now, voting, within};

/// Of all clients here; also the time to live of their leases.
const MAX_TTL: Duration = Duration::from_millis(1_500);
const SOON: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_waits_for_the_quarantine_unless_somebody_vouches() {
    let nodes = Nodes::start(5);
    let connect = Connect {
        max_ttl: MAX_TTL,
        vouches: false,
        ..Connect::to(nodes.urls(), MAX_TTL)
    };
    let started = now();
    let redlock = connect.client().await;
    let error = redlock.try_acquire("a").await.unwrap_err();
    println!("{error}");
    assert_eq!(error.kind(), AcquireErrorKind::Quarantined, "{error}");
    let ready_in = error.ready_in().expect("it says when");
    assert!(
        ready_in > MAX_TTL / 2 && ready_in < MAX_TTL * 2,
        "{ready_in:?}"
    );
    for report in error.reports() {
        let quarantined = matches!(
            report.answer,
            NodeAnswer::NotAVote {
                reason: NotAVote::Quarantined { .. }
            } | NodeAnswer::Pending
        );
        assert!(quarantined, "{error}");
    }

    // A client that waits for long enough needs no operator.
    let grants = nodes.grants_in_all();
    let wait = AcquireOptions::new().wait(Wait::UpTo(ready_in * 2));
    let guard = redlock.acquire_with("a", wait.clone()).await.unwrap();
    let took = now() - started;
    let attempts = (nodes.grants_in_all() - grants) / 5;
    println!("a lease after {took:?} and {attempts} attempts");
    assert!(took > MAX_TTL && took < MAX_TTL * 2, "{took:?}");
    assert!(
        attempts < 60,
        "{attempts} attempts in {took:?} are no waiting"
    );
    guard.release().await.unwrap();

    // If an operator vouches that the nodes are new, a client does not have to wait.
    let nodes = Nodes::start(5);
    let redlock = Connect {
        nodes: nodes.urls(),
        ..connect
    }
    .client()
    .await;
    redlock.try_acquire("a").await.unwrap_err();
    let reports = redlock.dangerous_bless().await;
    assert!(
        reports
            .iter()
            .all(|report| report.answer == NodeAnswer::Reachable),
        "{reports:?}"
    );
    redlock
        .try_acquire("a")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

// Shows: L3.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s22_masters_that_lost_their_counters_count_on_from_where_the_others_are() {
    let mut nodes = Nodes::start(5);
    let connect = Connect {
        max_ttl: MAX_TTL,
        ..Connect::to(nodes.urls(), MAX_TTL)
    };
    let redlock = connect.client().await;
    // So far ahead of the clock that it cannot stand in for what is forgotten.
    let ahead = "5000000000000000";
    nodes.ask_all(&["ZADD", "{redlock}:counters", ahead, "floor"]);
    let guard = redlock.acquire("a").await.unwrap();
    let mut newest = guard.token();
    assert!(newest.to_string().as_str() > ahead, "{newest}");
    guard.release().await.unwrap();

    let patient = AcquireOptions::new().wait(Wait::UpTo(MAX_TTL));
    for node in 0..3 {
        nodes[node].restart().unwrap();
        voting(&redlock, 4, SOON).await;
        voting(&redlock, 5, SOON * 2).await;
    }
    // Only the nodes that have restarted are left, and no other node remembers a token for them.
    nodes.kill(3..5);
    let fresh = Connect {
        vouches: false,
        ..connect
    }
    .client()
    .await;
    for client in [&fresh, &redlock] {
        let guard = client.acquire_with("a", patient.clone()).await.unwrap();
        assert!(guard.token() > newest, "{} after {newest}", guard.token());
        newest = guard.token();
        guard.release().await.unwrap();
    }
}

// Shows: L3.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s22_one_server_under_two_addresses_cannot_say_what_the_others_knew() {
    let mut nodes = Nodes::start(3);
    let connect = Connect {
        max_ttl: MAX_TTL,
        ..Connect::to(nodes.urls(), MAX_TTL)
    };
    drop(connect.client().await);
    // A token that a majority has, and node 2 has not, and so far ahead of the clock that it cannot stand in for it.
    let ahead = "5000000000000000";
    for node in 0..2 {
        nodes.ask(node, &["ZADD", "{redlock}:counters", ahead, "floor"]);
    }
    nodes[0].restart().unwrap();

    let stranger = Connect {
        vouches: false,
        ..connect
    };
    let same = Proxy::start(nodes[2].address()).await.unwrap();
    let two = [nodes[0].url(), same.url(), nodes[2].url()];
    let misled = Connect {
        nodes: two.to_vec(),
        ..stranger.clone()
    };
    let misled = misled.client().await;
    let waits = async {
        loop {
            match &misled.node_reports().await[0].answer {
                NodeAnswer::Reachable => panic!("it votes, and nobody knows the token"),
                NodeAnswer::NotAVote {
                    reason: NotAVote::Stuck { reason },
                } => return reason.clone(),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let why = within("what it waits for", MAX_TTL * 4, waits).await;
    assert!(why.contains("bring those back"), "{why}");
    let error = misled.try_acquire("a").await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::NoQuorum, "{error}");

    // One that can read all three servers tells it.
    let redlock = stranger.client().await;
    voting(&redlock, 3, SOON * 2).await;
    nodes.kill(1..2);
    let guard = redlock.acquire("a").await.unwrap();
    assert!(guard.token().to_string().as_str() > ahead, "{guard:?}");
}

// Shows: L3.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s22_a_master_that_may_not_vote_keeps_none_that_restarted_from_voting() {
    let mut nodes = Nodes::start(3);
    let connect = Connect {
        max_ttl: MAX_TTL,
        ..Connect::to(nodes.urls(), MAX_TTL)
    };
    drop(connect.client().await);
    for (name, value) in [("maxmemory-policy", "allkeys-lru"), ("maxmemory", "100mb")] {
        nodes.ask(0, &["CONFIG", "SET", name, value]);
    }
    nodes[2].restart().unwrap();
    let redlock = Connect {
        vouches: false,
        ..connect
    }
    .client()
    .await;
    voting(&redlock, 2, SOON * 2).await;
    let guard = redlock.acquire("a").await.unwrap();
    guard.release().await.unwrap();
}
