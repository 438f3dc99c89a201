//! A client that has more to do than it can: what waits in it is not the nodes' fault.

use std::time::Duration;

use redlock_proto::{Effect, FailureKind, Quarantine, Request, Verb};

use crate::clients::bench;

const NODES: usize = 3;
const TTL: Duration = Duration::from_secs(3);
/// Requests that may wait to be sent to a node.
const MOST: usize = 8;

/// A client, its nodes, and the links between them, which send what the test lets them send.
struct Bench {
    bench: bench::Bench,
    won: Vec<u64>,
    failed: Vec<(u64, FailureKind)>,
}

impl Bench {
    fn new() -> Self {
        let quarantine = Quarantine::new(2 * TTL, 0.01);
        let mut bench = bench::Bench::with_most_unsent(NODES, quarantine, MOST);
        (bench.ttl, bench.quorum_wait) = (TTL, Some(Duration::ZERO));
        drop(bench.sent(0));
        Self {
            bench,
            won: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Notes what became of acquisitions.
    fn note(&mut self) {
        for effect in self.bench.seen(0) {
            match effect {
                Effect::Acquired { id, .. } => self.won.push(id),
                Effect::NotAcquired { id, failure, .. } => {
                    self.failed.push((id, failure.expect("it is open").kind));
                }
                _ => {}
            }
        }
    }

    /// Lets the client acquire a key of its own for this number; the first has the number 1.
    fn acquire(&mut self, id: u64, wait: Duration) {
        self.bench.wait(wait);
        self.bench.acquire_key(0, &format!("key {id}"));
        self.note();
    }

    fn unsent(&self, node: usize) -> usize {
        self.bench.unanswered(0, node).count()
    }

    /// Lets `ms` milliseconds pass; each link reports what it has not sent, and since when it awaits an answer.
    fn pass(&mut self, ms: u64, awaited: Option<u64>) {
        self.bench.pass(ms);
        for node in 0..NODES {
            let unsent = self.unsent(node);
            self.bench.report_backlog(0, node, unsent, awaited);
        }
        self.bench.due(0);
        self.note();
    }

    /// Sends each node what waits, and lets it answer.
    fn answer(&mut self) {
        for node in 0..NODES {
            self.bench.answer(0, node);
        }
        self.note();
    }

    fn verbs(&self, node: usize) -> Vec<&'static str> {
        let word = |request: &Request| match request {
            Request::Lock { verb, .. } => match verb {
                Verb::Acquire { .. } => "acquire",
                Verb::Extend { .. } => "extend",
                _ => "release",
            },
            _ => "other",
        };
        self.bench.unanswered(0, node).map(word).collect()
    }
}

// Shows: T6.10.
#[test]
fn acquires_wait_in_order_while_requests_wait_to_be_sent_and_all_win() {
    let mut bench = Bench::new();
    bench.pass(0, None);
    for id in 1..=100 {
        bench.acquire(id, 30 * TTL);
    }
    let mut asked = 0;
    while bench.won.len() < 100 {
        let most = (0..NODES).map(|node| bench.unsent(node)).max();
        assert!(most <= Some(MOST), "{most:?} wait for a node");
        asked += bench.unsent(0);
        bench.answer();
        // In all it takes far longer than a node may.
        bench.pass(40, None);
        assert_eq!(bench.failed, []);
    }
    assert!(bench.won.iter().copied().eq(1..=100), "{:?}", bench.won);
    assert!(asked < 300, "work is multiplied: {asked} requests");
}

// Shows: T6.10.
#[test]
fn the_time_of_a_node_counts_from_when_its_request_was_written() {
    let mut bench = Bench::new();
    bench.pass(0, None);
    bench.acquire(1, 2 * TTL);
    // It waits in the client for longer than a node may take.
    bench.pass(300, None);
    bench.pass(300, None);
    assert!(bench.failed.is_empty() && bench.verbs(0) == ["acquire"]);
    bench.pass(199, Some(600));
    assert_eq!(bench.verbs(0), ["acquire"]);
    bench.pass(1, Some(600));
    assert_eq!(bench.failed, [(1, FailureKind::NoQuorum)]);
    assert_eq!(bench.verbs(0), ["acquire", "release"]);
}

// Shows: T6.10.
#[test]
fn nodes_that_say_nothing_are_an_outage_though_the_request_was_written_a_little_late() {
    let mut bench = Bench::new();
    bench.pass(0, None);
    bench.acquire(1, Duration::ZERO);
    bench.pass(5, Some(5));
    // Its caller's time is over, and the nodes have had all of theirs but 5 ms.
    bench.pass(195, Some(5));
    assert_eq!(bench.failed, [(1, FailureKind::NoQuorum)]);
}

// Shows: T6.10.
#[test]
fn a_slow_attempt_is_no_outage_while_nodes_answer_others() {
    let mut bench = Bench::new();
    bench.pass(0, None);
    bench.acquire(1, Duration::ZERO);
    bench.acquire(2, TTL);
    for heard in [150, 300, 450, 600] {
        bench.pass(150, Some(heard));
    }
    // The wait of the first is over, and the second goes on with its attempt.
    assert_eq!(bench.failed, [(1, FailureKind::Overloaded)]);
    bench.answer();
    assert_eq!(bench.won, [2]);
}

// Shows: T6.10.
#[test]
fn an_attempt_that_leaves_too_little_of_its_lease_is_made_again() {
    let mut bench = Bench::new();
    bench.pass(0, None);
    bench.acquire(1, 2 * TTL);
    bench.pass(1_600, None);
    assert_eq!(bench.verbs(0), ["acquire", "release"]);
    bench.answer();
    bench.pass(60, None);
    bench.answer();
    assert_eq!((&bench.won[..], &bench.failed[..]), (&[1][..], &[][..]));
}

// Shows: T6.10.
#[test]
fn renewals_are_sent_before_acquires_that_wait() {
    let mut bench = Bench::new();
    bench.pass(0, None);
    bench.acquire(1, TTL);
    bench.answer();
    assert_eq!(bench.won, [1]);
    // It has the key on all nodes.
    bench.pass(150, None);
    bench.answer();
    for id in 2..12 {
        bench.acquire(id, TTL);
    }
    let before = bench.verbs(0).len();
    assert_eq!(before, MOST, "the others wait");
    drop(bench.bench.sent(0));
    bench.pass(900, Some(1_040));
    let verbs = bench.verbs(0);
    let renewal = verbs.iter().position(|verb| *verb == "extend");
    let acquire = verbs.iter().position(|verb| *verb == "acquire");
    assert!(renewal.is_some() && acquire.is_some(), "{verbs:?}");
    assert!(renewal < acquire, "{verbs:?}");
}

/// Makes a client that has a lease whose renewal has waited for too long, though nodes have answered at `heard`.
fn behind(heard: u64) -> Bench {
    let mut bench = Bench::new();
    bench.pass(0, None);
    bench.acquire(1, TTL);
    bench.answer();
    // It has the key on all nodes.
    bench.pass(150, None);
    bench.answer();
    bench.pass(850, None);
    assert_eq!(bench.verbs(0), ["extend"]);
    bench.pass(400, Some(heard));
    bench
}

// Shows: T6.10.
#[test]
fn attempts_wait_while_the_client_is_behind_with_a_renewal() {
    let mut bench = behind(1_300);
    bench.acquire(2, TTL);
    bench.acquire(3, TTL / 30);
    bench.pass(90, Some(1_400));
    assert_eq!(bench.verbs(0), ["extend"]);
    assert_eq!(bench.failed, []);
    // Their waits end meanwhile, as ever.
    bench.pass(120, Some(1_600));
    assert_eq!(bench.failed, [(3, FailureKind::Overloaded)]);
    assert_eq!(bench.verbs(0), ["extend"]);
    bench.answer();
    bench.pass(1, None);
    assert_eq!(bench.verbs(0), ["acquire"]);
    bench.answer();
    assert_eq!(bench.won, [1, 2]);
}

// Shows: T6.10.
#[test]
fn attempts_wait_for_no_renewal_that_silent_nodes_delay() {
    let mut bench = behind(1_190);
    bench.acquire(2, Duration::ZERO);
    assert_eq!(bench.verbs(0).last(), Some(&"acquire"));
}

// Shows: T6.10.
#[test]
fn a_wait_that_ends_in_the_client_says_so() {
    let mut bench = Bench::new();
    bench.pass(0, None);
    for id in 1..=MOST as u64 + 1 {
        bench.acquire(id, TTL / 10);
    }
    for _ in 0..3 {
        bench.pass(99, Some(bench.bench.ms() + 99));
    }
    assert_eq!(bench.failed, []);
    bench.pass(3, Some(300));
    assert!(
        bench
            .failed
            .contains(&(MOST as u64 + 1, FailureKind::Overloaded))
    );
}
