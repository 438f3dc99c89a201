//! Nodes that are dead or hung: a minority costs nothing, a majority is an error that says so.

use std::time::Duration;

use redlock_core::{
    AcquireError, AcquireErrorKind, AcquireOptions, NodeAnswer, NotAVote, Redlock, Wait,
};
use redlock_tests::{Nodes, client, now, within};

const TTL: Duration = Duration::from_secs(10);
/// The default for that time to live.
const NODE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long acquires take, in order of length.
async fn acquires(redlock: &Redlock) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..100 {
        let started = now();
        let acquire = within("an acquire", TTL, redlock.acquire("a"));
        let guard = acquire.await.unwrap();
        times.push(now() - started);
        guard.release().await.unwrap();
    }
    times.sort_unstable();
    times
}

// Shows: T6.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l01_a_hung_minority_does_not_delay_an_acquire() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    acquires(&redlock).await;
    let healthy = acquires(&redlock).await;
    // The first two: a client that asks one node after the other would stop at them.
    nodes.freeze(0..2);
    let hung = acquires(&redlock).await;
    nodes.thaw(0..2);
    let (median, healthy) = (hung[50], healthy[50]);
    eprintln!("median {healthy:?} with all nodes, {median:?} with two of five hung");
    assert!(
        median < healthy * 10,
        "median {median:?}, and {healthy:?} with all nodes"
    );
    assert!(median < NODE_TIMEOUT / 10, "median {median:?}");
    assert!(
        hung[95] < NODE_TIMEOUT / 2,
        "the slowest: {:?}",
        &hung[95..]
    );
}

// Shows: T6.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l02_a_dead_minority_does_not_fail_an_acquire() {
    let mut nodes = Nodes::start(5);
    let before = client(nodes.urls(), TTL).await;
    nodes.kill(3..5);
    let after = client(nodes.urls(), TTL).await;
    for redlock in [before, after] {
        for _ in 0..20 {
            let acquire = within("an acquire", TTL, redlock.try_acquire("a"));
            let guard = acquire.await.unwrap();
            guard.extend().await.unwrap();
            guard.release().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_the_error_names_each_dead_node_with_its_reason() {
    let mut nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    nodes.kill(0..3);
    for wait in [Wait::Never, Wait::UpTo(Duration::from_secs(1))] {
        let error = fails_in_time(&redlock, wait).await;
        assert_eq!(error.kind(), AcquireErrorKind::NoQuorum, "{error}");
        let lines = error.to_string();
        for (node, report) in error.reports().iter().enumerate() {
            assert_eq!(*report.node, nodes[node].address().to_string());
            let said = match &report.answer {
                NodeAnswer::NotExecuted { reason } | NodeAnswer::Unknown { reason } => {
                    node < 3 && !reason.is_empty()
                }
                // They were asked, and the attempt was over before they could answer.
                NodeAnswer::Granted | NodeAnswer::Reachable => node >= 3,
                // Two of five nodes are too few to compare their clocks.
                NodeAnswer::NotAVote { reason } => node >= 3 && *reason == NotAVote::Alone,
                _ => false,
            };
            assert!(said, "node {node}: {error}");
            assert!(lines.contains(&report.to_string()), "{error}");
        }
        // By now the broken connections have been tried again.
        if wait != Wait::Never {
            assert!(lines.contains("refused"), "{lines}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_the_error_names_each_hung_node_with_its_reason() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    nodes.freeze(0..3);
    let waits = [
        Wait::Never,
        Wait::UpTo(Duration::from_secs(1)),
        Wait::UpTo(Duration::from_secs(4)),
        Wait::Never,
    ];
    for (attempt, wait) in waits.into_iter().enumerate() {
        let error = fails_in_time(&redlock, wait).await;
        assert_eq!(error.kind(), AcquireErrorKind::NoQuorum, "{error}");
        assert_eq!(error.reports().len(), 5);
        for (node, report) in error.reports().iter().enumerate() {
            assert_eq!(*report.node, nodes[node].address().to_string());
            match &report.answer {
                NodeAnswer::NotExecuted { reason } | NodeAnswer::Unknown { reason } => {
                    assert!(node < 3 && !reason.is_empty(), "node {node}: {error}");
                }
                // Known to lag, a majority fails the attempt before the others can answer.
                NodeAnswer::Pending => assert!(node < 3 || attempt > 0, "node {node}: {error}"),
                _ => assert!(node >= 3, "node {node}: {error}"),
            }
        }
    }
    // What was taken meanwhile, and what the hung nodes run only now, is given back.
    nodes.thaw(0..3);
    nodes.become_empty(TTL / 4).await;
}

/// The error of an acquire, which comes no later than its wait and one time limit of a node.
async fn fails_in_time(redlock: &Redlock, wait: Wait) -> AcquireError {
    let longest = match wait {
        Wait::UpTo(longest) => longest,
        _ => Duration::ZERO,
    };
    let acquire = redlock.acquire_with("a", AcquireOptions::new().wait(wait));
    let error = within("the error", longest + NODE_TIMEOUT * 2, acquire).await;
    error.expect_err("there is no majority")
}
