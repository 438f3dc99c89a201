//! A client that has more to do than it can: what waits in it is not the nodes' fault.

use std::{num::NonZeroUsize, time::Duration};

use redlock_proto::{
    Acquire, Backlog, Client, ClientConfig, Effect, Entropy, FailureKind, FanOut, Instant,
    Keyspace, LockMode, NodeTime, NodeVerb, Now, OwnerId, Quarantine, Quorum, Request, RetryPolicy,
    Store, Timing, Verb,
};

const NODES: usize = 3;
const MS: Duration = Duration::from_millis(1);
const TTL: Duration = Duration::from_secs(3);
/// Requests that may wait to be sent to a node.
const MOST: usize = 8;

struct Counting(u32);

impl Entropy for Counting {
    fn owner(&mut self) -> OwnerId {
        self.0 += 1;
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.0.to_le_bytes());
        OwnerId::from_random(bytes)
    }

    fn bits(&mut self) -> u64 {
        0
    }
}

/// A client, its nodes, and the links between them, which send what the test lets them send.
struct Bench {
    client: Client,
    keyspace: Keyspace,
    nodes: Vec<Store>,
    unsent: Vec<Vec<(u64, Request)>>,
    won: Vec<u64>,
    failed: Vec<(u64, FailureKind)>,
    ms: u64,
}

impl Bench {
    fn new() -> Self {
        let keyspace = Keyspace::new("{bench}", Quarantine::new(2 * TTL, 0.01));
        let config = ClientConfig {
            quorum: Quorum::of(NonZeroUsize::new(NODES).expect("there are some")),
            keyspace: keyspace.clone(),
            retry: RetryPolicy::new(5 * MS, 50 * MS).expect("0 < 5 <= 50"),
            node_timeout: 200 * MS,
            inspect_every: ClientConfig::INSPECT_EVERY,
            fan_out: FanOut::All,
            most_unsent: MOST,
        };
        let stores = (0..NODES).map(|node| Store::vouched_for(node.to_string().as_str().into()));
        let mut bench = Self {
            client: Client::new(config, Counting(0)),
            keyspace,
            nodes: stores.collect(),
            unsent: vec![Vec::new(); NODES],
            won: Vec::new(),
            failed: Vec::new(),
            ms: 0,
        };
        for node in 0..NODES {
            let (time, now) = (bench.time(), bench.now());
            let hello = [Request::Node(NodeVerb::Inspect)];
            let answer = bench.nodes[node].call(&bench.keyspace, &hello, time);
            bench.client.on_connected(node, answer, now.clock, now);
        }
        bench.gather();
        bench.unsent.iter_mut().for_each(Vec::clear);
        bench
    }

    fn time(&self) -> NodeTime {
        NodeTime::from_micros((self.ms + 1_000_000) * 1_000)
    }

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    fn now(&self) -> Now {
        Now {
            clock: Self::at(self.ms),
            wall: self.time().as_micros(),
        }
    }

    fn gather(&mut self) {
        while let Some(effect) = self.client.poll_effect() {
            match effect {
                Effect::Send {
                    node,
                    round,
                    request,
                    ..
                } => self.unsent[node].push((round, request)),
                Effect::Acquired { id, .. } => self.won.push(id),
                Effect::NotAcquired { id, failure, .. } => {
                    self.failed.push((id, failure.expect("it is open").kind));
                }
                _ => {}
            }
        }
    }

    fn acquire(&mut self, id: u64, wait: Duration) {
        let now = self.now();
        let request = Acquire {
            mode: LockMode::Exclusive,
            keys: format!("key {id}").as_str().into(),
            timing: Timing::new(TTL, 0.01, 50 * MS).expect("enough is left"),
            renew: true,
            max_hold: None,
            tokens: 1,
            fairness: redlock_proto::Fairness::Cohort,
            came: now.clock,
            wait_until: now.clock + wait,
            quorum_wait: Some(Duration::ZERO),
            label: None,
        };
        self.client.acquire(id, request, now);
        self.gather();
    }

    /// Lets `ms` milliseconds pass; each link reports what it has not sent, and since when it awaits an answer.
    fn pass(&mut self, ms: u64, awaited: Option<u64>) {
        self.ms += ms;
        for node in 0..NODES {
            let backlog = Backlog {
                unsent: self.unsent[node].len(),
                awaited: awaited.map(Self::at),
            };
            self.client.on_backlog(node, backlog);
        }
        let now = self.now();
        self.client.on_timer(now);
        self.gather();
    }

    /// Sends each node what waits, and lets it answer.
    fn answer(&mut self) {
        for node in 0..NODES {
            let (rounds, requests): (Vec<u64>, Vec<Request>) =
                std::mem::take(&mut self.unsent[node]).into_iter().unzip();
            let (time, now) = (self.time(), self.now());
            let answer = self.nodes[node].call(&self.keyspace, &requests, time);
            let replies = answer
                .replies
                .into_iter()
                .map(|reply| Ok(reply.expect("it is in range")));
            let results: Vec<_> = rounds.into_iter().zip(replies).collect();
            self.client
                .on_answer(node, answer.standing, results, now.clock, now);
            self.gather();
        }
    }

    fn verbs(&self, node: usize) -> Vec<&'static str> {
        let word = |(_, request): &(u64, Request)| match request {
            Request::Lock { verb, .. } => match verb {
                Verb::Acquire { .. } => "acquire",
                Verb::Extend { .. } => "extend",
                _ => "release",
            },
            _ => "other",
        };
        self.unsent[node].iter().map(word).collect()
    }
}

// Shows: T6.10.
#[test]
fn acquires_wait_in_order_while_requests_wait_to_be_sent_and_all_win() {
    let mut bench = Bench::new();
    bench.pass(0, None);
    for id in 0..100 {
        bench.acquire(id, 30 * TTL);
    }
    let mut asked = 0;
    while bench.won.len() < 100 {
        let most = bench.unsent.iter().map(Vec::len).max();
        assert!(most <= Some(MOST), "{most:?} wait for a node");
        asked += bench.unsent[0].len();
        bench.answer();
        // In all it takes far longer than a node may.
        bench.pass(40, None);
        assert_eq!(bench.failed, []);
    }
    assert!(bench.won.iter().copied().eq(0..100), "{:?}", bench.won);
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
    bench.unsent.iter_mut().for_each(Vec::clear);
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
    for id in 0..=MOST as u64 {
        bench.acquire(id, TTL / 10);
    }
    for _ in 0..3 {
        bench.pass(99, Some(bench.ms + 99));
    }
    assert_eq!(bench.failed, []);
    bench.pass(3, Some(300));
    assert!(
        bench
            .failed
            .contains(&(MOST as u64, FailureKind::Overloaded))
    );
}
