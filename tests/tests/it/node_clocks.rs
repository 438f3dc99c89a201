//! Nodes expire keys by their wall clocks, so a node whose clock disagrees with the others' does not vote.
#![cfg(target_os = "linux")]

use std::time::Duration;

use redlock_core::{
    AcquireErrorKind, AcquireOptions, BuildErrorKind, NodeAnswer, NotAVote, Redlock, Renewal, Wait,
};
use redlock_sandbox::{ServerClock, ServerOptions};
use redlock_tests::{Connect, Nodes, Proxy, builder, client, now, voting, within};

const KEY: &str = "{redlock}:lock:a";
const TTL: Duration = Duration::from_secs(20);
const HOUR: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_secs(2);

/// Servers whose clocks can be set.
fn nodes(count: usize) -> Nodes {
    Nodes::start_with(count, &ServerOptions::default().own_clock())
}

fn clock(nodes: &Nodes, node: usize) -> &ServerClock {
    nodes[node].clock().expect("it was asked for")
}

async fn answer(redlock: &Redlock, node: usize) -> NodeAnswer {
    redlock.node_reports().await.swap_remove(node).answer
}

const DISAGREES: NodeAnswer = NodeAnswer::NotAVote {
    reason: NotAVote::Clock,
};

// Shows: L2.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_a_node_whose_clock_is_an_hour_off_does_not_vote_until_it_is_right() {
    let mut nodes = nodes(3);
    clock(&nodes, 1).advance(HOUR).unwrap();
    let redlock = client(nodes.urls(), TTL).await;
    assert_eq!(answer(&redlock, 1).await, DISAGREES);
    for _ in 0..20 {
        redlock
            .try_acquire("a")
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    }
    clock(&nodes, 1).set_back(HOUR).unwrap();
    voting(&redlock, 3, SOON).await;
    // Behind is as bad: the node would keep keys for an hour too long.
    clock(&nodes, 1).set_back(HOUR).unwrap();
    voting(&redlock, 2, SOON).await;
    assert_eq!(answer(&redlock, 1).await, DISAGREES);
    nodes.kill(2..3);
    let refused = async {
        loop {
            let error = redlock.try_acquire("a").await.unwrap_err();
            assert_eq!(error.kind(), AcquireErrorKind::NoQuorum, "{error}");
            // An attempt ends as soon as the others have decided it.
            if error.reports()[1].answer != NodeAnswer::Pending {
                return error;
            }
        }
    };
    let error = within("the node's answer", SOON, refused).await;
    let line = error.reports()[1].to_string();
    assert!(line.contains("synchronise it"), "{line}");
    assert!(error.to_string().contains(&line), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_clocks_of_which_no_majority_agrees_are_a_build_error_that_says_so() {
    let nodes = nodes(3);
    clock(&nodes, 1).advance(HOUR).unwrap();
    clock(&nodes, 2).advance(HOUR * 2).unwrap();
    let error = builder(nodes.urls(), TTL).build().await.unwrap_err();
    println!("{error}");
    assert_eq!(error.kind(), BuildErrorKind::NoQuorum);
    assert_eq!(
        error.to_string().matches("synchronise it").count(),
        3,
        "{error}"
    );
}

// Shows: L2.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_a_clock_that_is_stepped_over_a_lease_lets_no_second_holder_in() {
    let nodes = nodes(3);
    let address = Proxy::start(nodes[2].address()).await.unwrap();
    let urls = [nodes[0].url(), nodes[1].url(), address.url()];
    let (holder, other) = (client(urls, TTL).await, client(nodes.urls(), TTL).await);
    voting(&other, 3, SOON).await;
    // The request to the third node is on its way for ever, so the first two are the holder's majority.
    address.hold_requests();
    let manual = AcquireOptions::new().renewal(Renewal::Manual);
    let held = holder.acquire_with("a", manual).await.unwrap();
    assert!(nodes.pttl(0, KEY).is_some());

    clock(&nodes, 0).advance(HOUR).unwrap();
    assert!(nodes.pttl(0, KEY).is_none(), "the step has ended the key");
    let until = now() + SOON;
    let mut attempts = 0;
    while now() < until {
        other.try_acquire("a").await.unwrap_err();
        attempts += 1;
    }
    assert!(held.lease().is_held());
    assert_eq!(answer(&other, 0).await, DISAGREES);
    println!("{attempts} attempts, and one holder");
    held.release().await.unwrap();
    // The two that agree are enough.
    let wait = AcquireOptions::new().wait(Wait::UpTo(SOON));
    let guard = other.acquire_with("a", wait).await.unwrap();
    guard.release().await.unwrap();
}

// Shows: L1.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_clocks_that_are_set_forward_do_not_end_a_quarantine() {
    let max_ttl = Duration::from_millis(1_500);
    let nodes = nodes(3);
    let connect = Connect {
        max_ttl,
        vouches: false,
        ..Connect::to(nodes.urls(), max_ttl)
    };
    let started = now();
    let redlock = connect.client().await;
    for node in 0..3 {
        clock(&nodes, node).advance(HOUR).unwrap();
    }
    let voting = voting(&redlock, 3, max_ttl * 3);
    within("they vote", max_ttl * 3, voting).await;
    let took = now() - started;
    println!("they vote after {took:?}");
    assert!(took > max_ttl, "{took:?}");
}
