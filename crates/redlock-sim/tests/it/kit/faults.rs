//! Each fault does what it says, and the client what it promises.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use redlock_core::{
    AcquireErrorKind, AcquireOptions, LeaseLost, LossReason, NodeAnswer, NotAVote, Wait,
};
use redlock_sim::kit::{Fault, Recorder, SimNodes, VirtualProcess};
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

/// Kleppmann's pause: the holder stands still beyond its lease, and goes on as if nothing had happened.
// Shows: T2.2.
#[tokio::test(start_paused = true)]
async fn a_process_that_stood_still_beyond_its_lease_does_nothing_more_under_it() {
    let nodes = SimNodes::new(3);
    let (here, there) = (nodes.links(), nodes.links());
    let process = VirtualProcess::new();
    let first = here.client().virtual_process(&process);
    let first = first.build().await.unwrap();
    let second = there.client().build().await.unwrap();
    let recorder = Recorder::new();
    let steps = AtomicU32::new(0);
    let paused = process.run(async {
        let guard = first.acquire("key").await.unwrap();
        recorder.acquired(0, &guard);
        let work = async {
            loop {
                steps.fetch_add(1, Ordering::Relaxed);
                sleep(SECOND).await;
            }
        };
        let lost: Result<(), LeaseLost> = guard.run(work).await;
        (lost.unwrap_err().reason(), guard.token())
    });
    let other = async {
        // Renewed more than once, so that the lease is a good one until the pause.
        sleep(30 * SECOND).await;
        process.freeze();
        let stopped = steps.load(Ordering::Relaxed);
        let wait = AcquireOptions::new().wait(Wait::UpTo(60 * SECOND));
        let guard = second.acquire_with("key", wait).await.unwrap();
        recorder.acquired(1, &guard);
        sleep(5 * SECOND).await;
        process.thaw();
        sleep(5 * SECOND).await;
        assert!(
            guard.lease().is_held(),
            "what the other left behind released it"
        );
        assert_eq!(steps.load(Ordering::Relaxed), stopped);
        guard.token()
    };
    let ((reason, older), newer) = tokio::join!(paused, other);
    assert_eq!(reason, LossReason::Expired);
    assert!(newer > older);
    assert_eq!(recorder.finish(), []);
}

#[tokio::test(start_paused = true)]
async fn s28_a_request_that_arrives_after_its_connection_was_given_up_takes_nothing() {
    let nodes = SimNodes::new(3);
    let links = nodes.links();
    let redlock = links.client().build().await.unwrap();
    for node in 0..3 {
        links.set(node, Fault::Late { by: 3 * SECOND });
    }
    redlock.try_acquire("key").await.unwrap_err();
    sleep(5 * SECOND).await;
    assert_eq!(nodes.locks(), [0; 3]);
}

// Shows: T1.7.
#[tokio::test(start_paused = true)]
async fn s15_a_majority_that_forgot_lets_nobody_in_before_the_lease_is_over() {
    let nodes = SimNodes::new(3);
    let (here, there) = (nodes.links(), nodes.links());
    let first = here.client().max_ttl(10 * SECOND).build().await.unwrap();
    let second = there.client().max_ttl(10 * SECOND).build().await.unwrap();
    let recorder = Recorder::new();
    let guard = first.acquire("key").await.unwrap();
    recorder.acquired(0, &guard);
    here.cut_off(&[0, 1, 2]);
    for node in nodes.iter().take(2) {
        node.crash();
        node.forget();
        node.restart();
    }
    sleep(3 * SECOND).await;
    let error = second.try_acquire("key").await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Quarantined, "{error}");
    assert!(error.ready_in().is_some_and(|ready| ready > 5 * SECOND));
    let wait = AcquireOptions::new().wait(Wait::UpTo(20 * SECOND));
    let other = second.acquire_with("key", wait).await.unwrap();
    recorder.acquired(1, &other);
    assert!(!guard.lease().is_held());
    assert!(other.token() > guard.token());
    assert_eq!(recorder.finish(), []);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_clock_is_set_does_not_vote() {
    let nodes = SimNodes::new(3);
    let links = nodes.links();
    let redlock = links.client().build().await.unwrap();
    nodes.node(1).set_clock_forward(3_600 * SECOND);
    sleep(6 * SECOND).await;
    let off = NodeAnswer::NotAVote {
        reason: NotAVote::Clock,
    };
    assert_eq!(redlock.node_reports().await[1].answer, off);
    drop(redlock.try_acquire("key").await.unwrap());
    nodes.node(1).set_clock_back(3_600 * SECOND);
    sleep(6 * SECOND).await;
    let reports = redlock.node_reports().await;
    assert_eq!(reports[1].answer, NodeAnswer::Reachable);
}

#[tokio::test(start_paused = true)]
async fn a_frozen_node_runs_its_requests_when_it_goes_on() {
    let nodes = SimNodes::new(3);
    let links = nodes.links();
    let redlock = links.client().build().await.unwrap();
    nodes.node(2).freeze();
    let guard = redlock.try_acquire("key").await.unwrap();
    assert_eq!(nodes.locks(), [1, 1, 0]);
    guard.release().await.unwrap();
    nodes.node(2).thaw();
    sleep(3 * SECOND).await;
    assert_eq!(nodes.locks(), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn the_recorder_finds_what_must_not_be() {
    // Two sets of nodes, as by a mistake in the configuration.
    let (some, others) = (SimNodes::new(3), SimNodes::new(3));
    let one = some.links().client().build().await.unwrap();
    let two = others.links().client().build().await.unwrap();
    let recorder = Recorder::new();
    let first = one.acquire("key").await.unwrap();
    recorder.acquired(0, &first);
    let second = two.acquire("key").await.unwrap();
    recorder.acquired(1, &second);
    let found = recorder.finish();
    assert!(
        found
            .iter()
            .any(|(_, violation)| violation.name() == "Overlap"),
        "{found:?}"
    );
}
