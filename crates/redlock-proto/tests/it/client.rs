//! The client's state machine, one event at a time, with the model of a node for each of its nodes.

use std::{num::NonZeroUsize, time::Duration};

use redlock_proto::{
    Acquire, Client, ClientConfig, Effect, Entropy, FailureKind, FanOut, Instant, Keyspace,
    LockMode, NodeTime, NodeVerb, Now, OwnerId, Quarantine, Quorum, Reply, Request, RequestError,
    RetryPolicy, Standing, Store, Timing,
};

const TTL: Duration = Duration::from_secs(1);

/// A client, its nodes, and what it has asked of them.
struct Bench {
    client: Client,
    keyspace: Keyspace,
    nodes: Vec<Store>,
    sent: Vec<(usize, u64, Request)>,
    seen: Vec<Effect>,
    ms: u64,
}

/// Owners that are counted up.
struct Counting(u8);

impl Entropy for Counting {
    fn owner(&mut self) -> OwnerId {
        self.0 += 1;
        OwnerId::from_random([self.0; 16])
    }

    fn bits(&mut self) -> u64 {
        0
    }
}

impl Bench {
    /// Makes a client that asks all of its nodes at once; all are connected and vote.
    fn new(nodes: usize) -> Self {
        let keyspace = Keyspace::new("{bench}", Quarantine::new(2 * TTL, 0.01));
        let config = ClientConfig {
            quorum: Quorum::of(NonZeroUsize::new(nodes).expect("there are some")),
            keyspace: keyspace.clone(),
            retry: RetryPolicy::new(Duration::from_millis(5), Duration::from_millis(50))
                .expect("0 < 5 <= 50"),
            node_timeout: Duration::from_millis(200),
            inspect_every: ClientConfig::INSPECT_EVERY,
            fan_out: FanOut::All,
            most_unsent: 1024,
        };
        let stores = (0..nodes).map(|node| Store::vouched_for(node.to_string().as_str().into()));
        let mut bench = Self {
            client: Client::new(config, Counting(0)),
            keyspace,
            nodes: stores.collect(),
            sent: Vec::new(),
            seen: Vec::new(),
            ms: 0,
        };
        for node in 0..nodes {
            let (time, now) = (bench.time(), bench.now());
            let hello = [Request::Node(NodeVerb::Inspect)];
            let answer = bench.nodes[node].call(&bench.keyspace, &hello, time);
            bench.client.on_connected(node, answer, now.clock, now);
        }
        bench.gather();
        bench
    }

    fn time(&self) -> NodeTime {
        NodeTime::from_micros((self.ms + 1_000_000) * 1_000)
    }

    fn now(&self) -> Now {
        Now {
            clock: Instant::from_origin(Duration::from_millis(self.ms)),
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
                    connection,
                } => {
                    assert_eq!(connection, 1, "there was one connection to each");
                    self.sent.push((node, round, request));
                }
                other => self.seen.push(other),
            }
        }
    }

    fn acquire(&mut self, max_hold: Option<Duration>) {
        let now = self.now();
        let timing = Timing::new(TTL, 0.01, Duration::from_millis(50)).expect("enough is left");
        let request = Acquire {
            mode: LockMode::Exclusive,
            keys: "key".into(),
            timing,
            renew: true,
            max_hold,
            tokens: 1,
            fairness: redlock_proto::Fairness::Cohort,
            came: now.clock,
            wait_until: now.clock,
            quorum_wait: None,
            label: None,
        };
        self.client.acquire(1, request, now);
        self.gather();
    }

    /// Runs the requests that a node was sent, and returns its answer.
    fn run(&mut self, node: usize) -> (Standing, Vec<(u64, Reply)>) {
        let requests = self.sent.extract_if(.., |(to, ..)| *to == node);
        let (rounds, requests): (Vec<u64>, Vec<Request>) =
            requests.map(|(_, round, request)| (round, request)).unzip();
        let time = self.time();
        let answer = self.nodes[node].call(&self.keyspace, &requests, time);
        let replies = answer
            .replies
            .into_iter()
            .map(|reply| reply.expect("it is in range"));
        let standing = answer.standing.expect("it looked");
        (standing, rounds.into_iter().zip(replies).collect())
    }

    fn tell(&mut self, node: usize, standing: &Standing, replies: &[(u64, Reply)]) {
        let now = self.now();
        let results = replies
            .iter()
            .map(|(round, reply)| (*round, Ok(reply.clone())));
        let standing = Some(standing.clone());
        self.client
            .on_answer(node, standing, results, now.clock, now);
        self.gather();
    }

    fn answer(&mut self, node: usize) {
        let (standing, replies) = self.run(node);
        self.tell(node, &standing, &replies);
    }

    /// Lets a node run and answer the requests of this round; the other rounds are not sent yet.
    fn answer_only(&mut self, node: usize, round: u64) {
        let (of_round, others) = self.sent.drain(..).partition(|(_, of, _)| *of == round);
        self.sent = of_round;
        self.answer(node);
        self.sent.extend(others);
    }

    /// Returns the number of the last round that was sent.
    fn last_round(&self) -> u64 {
        let rounds = self.sent.iter().map(|(_, round, _)| *round);
        rounds.max().unwrap_or_default()
    }

    fn extend(&mut self) -> u64 {
        let now = self.now();
        self.client.extend(1, 9, now);
        self.gather();
        self.last_round()
    }

    fn is_held(&self) -> bool {
        self.seen
            .iter()
            .any(|effect| matches!(effect, Effect::Acquired { .. }))
    }

    fn failure(&self) -> Option<FailureKind> {
        self.seen.iter().find_map(|effect| match effect {
            Effect::NotAcquired { failure, .. } => failure.as_ref().map(|failure| failure.kind),
            _ => None,
        })
    }
}

// Shows: T1.2.
#[test]
fn an_answer_that_is_told_twice_is_heard_once() {
    let mut bench = Bench::new(3);
    bench.acquire(None);
    let (standing, replies) = bench.run(0);
    for _ in 0..3 {
        bench.tell(0, &standing, &replies);
    }
    assert!(!bench.is_held(), "one node is no majority");
    assert_eq!(bench.client.open_requests(), 2, "two have not answered");
    bench.answer(1);
    assert!(bench.is_held());
    let lost = RequestError::unknown("lost".into());
    let (_, round, _) = bench.sent.remove(0);
    let now = bench.now();
    let results = [(round, Err(lost))];
    bench.client.on_answer(2, None, results, now.clock, now);
    assert_eq!(bench.client.open_requests(), 0);
}

// Shows: T2.5.
#[test]
fn a_lease_that_has_been_held_for_its_longest_before_it_is_won_is_not_handed_out() {
    let mut bench = Bench::new(3);
    bench.acquire(Some(Duration::from_millis(100)));
    bench.answer(0);
    bench.ms = 100;
    bench.answer(1);
    assert!(!bench.is_held());
    assert_eq!(bench.failure(), Some(FailureKind::Expired));
    let released: Vec<usize> = bench.sent.iter().map(|(node, ..)| *node).collect();
    assert_eq!(released, [2, 0, 1, 2]);
}

#[test]
fn a_lease_may_be_asked_to_end_before_the_least_validity() {
    let mut bench = Bench::new(3);
    bench.acquire(Some(Duration::from_millis(10)));
    bench.answer(0);
    bench.ms = 9;
    bench.answer(1);
    assert!(bench.is_held());
}

/// A round of which only one node has answered ends after a later one, by its time limit.
// Shows: T5.1.
#[test]
fn what_a_node_said_before_it_was_healed_is_not_believed_after() {
    let mut bench = Bench::new(3);
    bench.acquire(None);
    (0..3).for_each(|node| bench.answer(node));
    bench.nodes[2].drop_locks();

    bench.ms = 10;
    let older = bench.extend();
    bench.answer_only(2, older);
    bench.ms = 20;
    let newer = bench.extend();
    (0..3).for_each(|node| bench.answer_only(node, newer));
    let healing = bench.last_round();
    bench.answer_only(2, healing);
    assert_eq!(bench.nodes[2].locks(bench.time()), 1, "it was healed");

    bench.ms = 210;
    let now = bench.now();
    bench.client.on_timer(now);
    bench.gather();
    bench.sent.clear();
    bench.client.release(1, None, now);
    bench.gather();
    let released: Vec<usize> = bench.sent.iter().map(|(node, ..)| *node).collect();
    assert_eq!(released, [0, 1, 2]);
}

#[test]
fn l08_a_search_for_a_floor_that_finds_none_is_not_begun_again_at_once() {
    let mut bench = Bench::new(3);
    // The other nodes are down, so the client cannot tell how far the counters had come.
    let now = bench.now();
    for node in [1, 2] {
        bench
            .client
            .on_disconnected(node, "connection refused".into(), now);
    }
    bench.nodes[0].flush();
    let mut asked = 0;
    for _ in 0..2_000 {
        bench.ms += 10;
        let now = bench.now();
        bench.client.on_timer(now);
        bench.gather();
        while !bench.sent.is_empty() {
            asked += bench.sent.len();
            assert!(asked < 10_000, "it goes on without a pause");
            let (standing, results) = bench.run(0);
            let results = results.into_iter().map(|(round, reply)| (round, Ok(reply)));
            bench
                .client
                .on_answer(0, Some(standing), results, now.clock, now);
            bench.gather();
        }
    }
    // In 20 s: a look each 31 ms, and a search with each of them at most.
    assert!((600..=1_400).contains(&asked), "{asked} requests");
}
