//! A network that delays requests and replies, and loses replies.

use std::time::Duration;

use redlock_core::{
    AcquireErrorKind, AcquireOptions, FanOut, NodeAnswer, NodeReport, Redlock, Wait,
};
use redlock_tests::{Nodes, Proxies, builder, eventually, for_as_long_as, now, voting};

/// So long that no key ends by itself in a test.
const TTL: Duration = Duration::from_secs(30);
const NODE_TIMEOUT: Duration = Duration::from_millis(300);
const LATE: Duration = Duration::from_millis(900);
const SOON: Duration = Duration::from_secs(2);

async fn behind_proxies(nodes: &Nodes) -> (Proxies, Redlock) {
    let proxies = Proxies::start(nodes.iter().map(|node| node.address())).await;
    // Without the allowance for clocks, validity that begins too late is not hidden by it.
    let redlock = builder(proxies.urls(), TTL)
        .node_timeout(NODE_TIMEOUT)
        .fan_out(FanOut::All)
        .clock_rate_error(0.0);
    let redlock = redlock.build().await.unwrap();
    redlock.dangerous_bless().await; // the nodes are new
    nodes.ask_all(&["CONFIG", "RESETSTAT"]);
    (proxies, redlock)
}

// Shows: T5.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s28_a_request_that_arrives_after_its_caller_gave_up_leaves_no_key() {
    let nodes = Nodes::start(3);
    let (proxies, redlock) = behind_proxies(&nodes).await;
    for _ in 0..3 {
        catch_up(&nodes, &redlock).await;
        let grants = nodes.grants_in_all();
        for proxy in &proxies.0 {
            proxy.delay_requests(LATE);
        }
        let error = redlock.try_acquire("a").await.unwrap_err();
        assert_eq!(error.kind(), AcquireErrorKind::NoQuorum, "{error}");
        assert_eq!(nodes.grants_in_all(), grants, "nothing has arrived yet");
        for proxy in &proxies.0 {
            proxy.delay_requests(Duration::ZERO);
        }
        let look = || nodes.grants_in_all();
        eventually("the request arrives", LATE * 2, look, |all| {
            *all == grants + 3
        })
        .await;
        // The release is right behind it: on the same connection, in order.
        nodes.become_empty(SOON).await;
    }
}

/// Waits until all nodes are asked by transactions: one that has just been late is not asked before it has caught up.
async fn catch_up(nodes: &Nodes, redlock: &Redlock) {
    let until = now() + LATE + SOON;
    let wait = AcquireOptions::new().wait(Wait::UpTo(SOON));
    let mut granted = 0;
    while granted < 3 {
        assert!(now() < until, "{granted} of 3 nodes are asked");
        let before = nodes.grants_in_all();
        let guard = redlock.acquire_with("a", wait.clone()).await.unwrap();
        guard.release().await.unwrap();
        nodes.become_empty(SOON).await;
        granted = nodes.grants_in_all() - before;
    }
}

// Shows: T5.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s28_a_late_request_to_one_node_leaves_no_key_though_the_lease_came_and_went() {
    let nodes = Nodes::start(3);
    let (proxies, redlock) = behind_proxies(&nodes).await;
    proxies.0[0].delay_requests(LATE);
    let guard = redlock.try_acquire("a").await.unwrap();
    guard.release().await.unwrap();
    let look = || nodes.grants(0);
    eventually("the request arrives", LATE * 2, look, |all| *all == 1).await;
    nodes.become_empty(SOON).await;
}

// Shows: T5.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s28_a_request_on_a_connection_that_was_given_up_leaves_no_key_when_it_arrives_at_last() {
    let nodes = Nodes::start(3);
    let (proxies, redlock) = behind_proxies(&nodes).await;
    // Only the request for a key reads the counters.
    let (late, asked) = (&proxies.0[0], || nodes.calls(0, "zmscore"));
    for round in 1..=3 {
        let (connections, before) = (late.connections(), asked());
        late.hold_requests();
        let guard = redlock.try_acquire("a").await.unwrap();
        // The client gives the connection up and makes another.
        let made = || late.connections();
        eventually("another connection", SOON * 4, made, |made| {
            *made > connections
        })
        .await;
        voting(&redlock, 3, SOON).await;
        assert_eq!(asked(), before, "the request has not arrived");
        // Over the new connection, where it cannot be behind the request.
        guard.release().await.unwrap();
        eventually(
            "the owner is tombstoned",
            SOON,
            || tombstones(&nodes),
            |tombstones| *tombstones == round,
        )
        .await;

        let before = asked();
        late.let_through();
        // The client has ended the connection at the server, before it sent the release.
        for_as_long_as(SOON / 4, || assert_eq!(asked(), before)).await;
        assert_eq!(nodes.pttl(0, "{redlock}:lock:a"), None);
        nodes.become_empty(SOON).await;
    }
}

/// The owners that are tombstoned on the first node.
fn tombstones(nodes: &Nodes) -> usize {
    let tombstones = nodes[0].command(&["KEYS", "*:tomb:*"]).unwrap();
    tombstones.as_array().map_or(0, <[_]>::len)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_is_told_too_late_does_not_count_and_is_given_back() {
    let nodes = Nodes::start(3);
    let (proxies, redlock) = behind_proxies(&nodes).await;
    for proxy in &proxies.0[..2] {
        proxy.delay_replies(LATE);
    }
    let started = now();
    let error = redlock.try_acquire("a").await.unwrap_err();
    assert!(now() - started < LATE, "it waited for the late replies");
    // Nodes that answer a heartbeat meanwhile are slow, and not away.
    let kinds = [AcquireErrorKind::NoQuorum, AcquireErrorKind::Overloaded];
    assert!(kinds.contains(&error.kind()), "{error}");
    assert_eq!(error.reports()[2].answer, NodeAnswer::Granted);
    assert_eq!(nodes.grants_in_all(), 3, "all three had granted it");
    // The releases are not late, only their confirmations are.
    nodes.become_empty(LATE / 2).await;
}

// Shows: T5.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s17_a_grant_whose_reply_was_lost_is_given_back_after_the_reconnection() {
    let nodes = Nodes::start(3);
    let (proxies, redlock) = behind_proxies(&nodes).await;
    catch_up(&nodes, &redlock).await;
    let (granted, released) = (nodes.grants_in_all(), nodes.calls_in_all("del"));
    for proxy in &proxies.0 {
        proxy.cut_after("ZADD");
    }
    let error = redlock.try_acquire("a").await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::NoQuorum, "{error}");
    let unknown = |report: &&NodeReport| matches!(report.answer, NodeAnswer::Unknown { .. });
    assert!(
        error.reports().iter().filter(unknown).count() >= 2,
        "{error}"
    );
    // Two were enough to decide; the third is cut too.
    let cuts = || {
        proxies
            .0
            .iter()
            .map(|proxy| proxy.cuts())
            .collect::<Vec<_>>()
    };
    eventually("every connection is cut", SOON, cuts, |cuts| {
        *cuts == [1; 3]
    })
    .await;
    let grants = || nodes.grants_in_all() - granted;
    eventually("all three have granted it", SOON, grants, |all| *all == 3).await;
    nodes.become_empty(SOON).await;
    assert_eq!(nodes.calls_in_all("del"), released + 3);

    let wait = AcquireOptions::new().wait(Wait::UpTo(SOON));
    let guard = redlock.acquire_with("a", wait).await.unwrap();
    guard.release().await.unwrap();
    nodes.become_empty(SOON).await;
}

// Shows: T5.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s17_a_release_whose_reply_was_lost_is_repeated_and_harms_nobody() {
    let nodes = Nodes::start(3);
    let (proxies, redlock) = behind_proxies(&nodes).await;
    let other = builder(nodes.urls(), TTL).clock_rate_error(0.0);
    let other = other.build().await.unwrap();
    for round in 1..=3 {
        let guard = redlock.acquire("a").await.unwrap();
        // A majority is enough to win, and the first node need not be part of it.
        let look = || nodes.pttl(0, "{redlock}:lock:a");
        eventually("the first node has the key", SOON, look, Option::is_some).await;
        proxies.0[0].cut_after("EVALSHA");
        guard.release().await.unwrap();
        nodes.become_empty(SOON).await;

        // Another has the lease by the time the release is repeated.
        let next = other.try_acquire("a").await.unwrap();
        // In the form that another connection needs.
        let look = || tombstones(&nodes);
        eventually("it is repeated", SOON, look, |tombstones| {
            *tombstones == round
        })
        .await;
        next.extend().await.unwrap();
        assert_eq!(nodes.keys().len(), 3, "{:?}", nodes.keys());
        next.release().await.unwrap();
        nodes.become_empty(SOON).await;
    }
    assert_eq!(proxies.0[0].cuts(), 3);
}

// Shows: T1.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s03_a_late_confirmation_never_counts_from_its_arrival() {
    let nodes = Nodes::start(3);
    let (proxies, redlock) = behind_proxies(&nodes).await;
    let delay = NODE_TIMEOUT / 2;
    for proxy in &proxies.0 {
        proxy.delay_replies(delay);
    }
    let mut started = now();
    let guard = redlock.try_acquire("a").await.unwrap();
    for _ in 0..5 {
        let known = now();
        assert!(known - started >= delay, "its confirmation was late");
        let deadline = known + guard.lease().remaining();
        // The request was under way for so long at least, however late this task noticed.
        let latest_start = known - delay;
        assert!(
            deadline < latest_start + TTL,
            "valid for {:?} and {TTL:?} from its request",
            deadline - latest_start - TTL
        );
        started = now();
        guard.extend().await.unwrap();
    }
}
