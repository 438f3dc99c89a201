mod connection;
mod transactions;

use std::time::Duration;

use super::*;
use crate::{
    JobEntry, JobVerb, KeySet, Lock, LockMode, NodeKey, NodeTime, OwnerId, RunId, Store, Verb,
};

const MS: Duration = Duration::from_millis(1);
const TTL: Duration = Duration::from_secs(5);
const LAG: Duration = Duration::from_millis(500);

fn at(ms: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(ms))
}

/// Random bits that are always the same.
struct Bits(u64);

impl Entropy for Bits {
    fn owner(&mut self) -> OwnerId {
        OwnerId::from_random([0; 16])
    }

    fn bits(&mut self) -> u64 {
        self.0
    }
}

fn config() -> LinkConfig {
    LinkConfig::new(Duration::from_secs(1), LAG)
}

fn hello() -> Answer {
    let mut store = Store::vouched_for(RunId::from("run"));
    let keyspace = crate::Keyspace::new("space", crate::Quarantine::new(TTL, 0.01));
    store.call(&keyspace, &HELLO, NodeTime::from_micros(1_000_000))
}

/// Returns a link with a connection since a moment.
fn up(config: LinkConfig, now: Instant) -> Link {
    let mut link = Link::new(config, Bits(0));
    connect(&mut link, now);
    link
}

fn connect(link: &mut Link, now: Instant) {
    assert!(link.begin_connect(now), "it is time to connect");
    link.on_connected(hello(), now, now);
    assert!(link.is_up());
    assert!(matches!(
        link.events.pop_back(),
        Some(LinkEvent::Connected { .. })
    ));
}

fn lock(verb: Verb, owner: u8) -> Request {
    Request::Lock {
        verb,
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: format!("key {owner}").as_str().into(),
            owner: OwnerId::from_random([owner; 16]),
        }
        .into(),
    }
}

fn acquire(owner: u8) -> Request {
    let verb = Verb::Acquire {
        ttl: TTL,
        proposal: 1,
        block: 1,
        wish: None,
        line: None,
    };
    lock(verb, owner)
}

/// Returns an acquire of two keys or none.
fn acquire_two(owner: u8) -> Request {
    let mut request = acquire(owner);
    if let Request::Lock { lock, .. } = &mut request {
        Arc::make_mut(lock).keys = KeySet::new(["key", "other"].map(NodeKey::from)).unwrap();
    }
    request
}

fn release(owner: u8) -> Request {
    lock(Verb::Release { ttl: TTL }, owner)
}

fn tombstone(owner: u8) -> Request {
    lock(Verb::Tombstone { ttl: TTL }, owner)
}

/// Returns what is said of the end of a run.
fn record() -> Request {
    let entry = JobEntry::from_wire("t 0001795226400000 01 0000000000000077 a text").unwrap();
    Request::Job {
        verb: JobVerb::Record { entry, ttl: TTL },
        job: "job".into(),
    }
}

/// Pushes requests for the present connection; each has the round of its place, from `first`.
fn push(link: &mut Link, first: u64, requests: Vec<Request>, now: Instant) {
    let connection = link.connections;
    for (round, request) in (first..).zip(requests) {
        link.push(round, request, connection, now);
    }
}

fn sent(link: &mut Link, now: Instant) -> Vec<Call> {
    link.on_timer(now);
    let calls = std::iter::from_fn(|| link.next_call(now)).collect();
    link.on_written(now);
    calls
}

fn asked(calls: &[Call]) -> Vec<Request> {
    let requests = calls.iter().map(|call| &call.requests[..]);
    requests.collect::<Vec<_>>().concat()
}

fn answer(replies: Vec<Result<Reply, Arc<str>>>) -> Answer {
    Answer {
        standing: None,
        replies,
    }
}

/// Returns what the client was told: the word for it, and the round.
fn events(link: &mut Link) -> Vec<(&'static str, u64)> {
    let mut events = Vec::new();
    while let Some(event) = link.poll_event() {
        match event {
            LinkEvent::Connected { .. } => events.push(("connected", 0)),
            LinkEvent::Disconnected { .. } => events.push(("disconnected", 0)),
            LinkEvent::Answered { results, .. } => {
                let results = results.into_iter();
                events.extend(results.map(|(round, result)| {
                    let word = if result.is_ok() { "answered" } else { "error" };
                    (word, round)
                }));
            }
            LinkEvent::Failed { round, error } if error.may_have_run => {
                events.push(("unknown", round));
            }
            LinkEvent::Failed { round, .. } => events.push(("not run", round)),
            LinkEvent::Delayed { round, .. } => events.push(("delayed", round)),
            LinkEvent::Needless { round } => events.push(("needless", round)),
        }
    }
    events
}

#[test]
fn more_travel_together_if_each_of_them_concerns_one_key() {
    let mut link = up(config(), at(0));
    let extend = Verb::Extend {
        ttl: TTL,
        write_back: None,
    };
    let plain = |owner: u8| match owner % 3 {
        0 => acquire(owner),
        1 => lock(extend, owner),
        _ => release(owner),
    };
    let mut requests: Vec<Request> = (0..120).map(plain).collect();
    requests[100] = acquire_two(100);
    push(&mut link, 0, requests, at(1));
    let calls = sent(&mut link, at(1));
    let sizes: Vec<usize> = calls.iter().map(|call| call.requests.len()).collect();
    assert_eq!(sizes, [64, 36, 1, 19]);
    let kinds = calls.iter().map(|call| call.is_transaction);
    assert!(kinds.eq([true, true, false, true]));
}

#[test]
fn requests_travel_together_and_calls_are_bounded() {
    let mut link = up(config(), at(0));
    push(
        &mut link,
        0,
        (0..40).map(|_| acquire_two(1)).collect(),
        at(1),
    );
    let calls = sent(&mut link, at(1));
    let sizes: Vec<usize> = calls.iter().map(|call| call.requests.len()).collect();
    assert_eq!(sizes, [16, 16, 8]);
    for round in 100..140 {
        push(&mut link, round, vec![acquire(2)], at(2));
        sent(&mut link, at(2));
    }
    assert_eq!(link.traffic.len() - 40, 40);
    assert_eq!(link.unsent().count(), 40 - (32 - 3));
    link.on_answer(calls[0].id, answer(vec![Ok(Reply::Done); 16]), at(3));
    let [next] = &sent(&mut link, at(3))[..] else {
        panic!("there is room for one call");
    };
    assert_eq!(next.requests.len(), 11);
}

// Shows: T6.7.
#[test]
fn a_node_that_lags_gets_no_requests_and_only_the_releases_of_what_it_may_have() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1)], at(0));
    assert_eq!(sent(&mut link, at(0)).len(), 1);
    let requests = vec![acquire(2), release(2), tombstone(2), release(1), acquire(3)];
    let extend = Verb::Extend {
        ttl: TTL,
        write_back: None,
    };
    push(&mut link, 2, requests, at(500));
    push(&mut link, 7, vec![lock(extend, 1)], at(500));
    let [call] = &sent(&mut link, at(500))[..] else {
        panic!("the release of what was sent is due");
    };
    assert_eq!(call.requests, [release(1)]);
    assert_eq!(
        events(&mut link),
        [
            ("not run", 2),
            ("not run", 6),
            ("not run", 7),
            ("needless", 3),
            ("needless", 4)
        ]
    );
    assert_eq!(link.requests_shed(), 3);
}

// Shows: T6.7.
#[test]
fn a_node_that_answers_in_time_and_is_asked_for_too_much_is_relieved_too() {
    let mut limits = config();
    limits.calls = 1;
    let mut link = up(limits, at(0));
    push(&mut link, 1, vec![acquire(1)], at(0));
    let first = sent(&mut link, at(0));
    push(&mut link, 2, vec![acquire_two(2); 20], at(100));
    link.on_answer(first[0].id, answer(vec![Ok(Reply::Done)]), at(400));
    let second = sent(&mut link, at(400));
    assert_eq!(second[0].requests.len(), 16);
    link.on_answer(second[0].id, answer(vec![Ok(Reply::Done); 16]), at(599));
    assert_eq!(
        sent(&mut link, at(599)).len(),
        1,
        "it has waited for 499 ms"
    );
    push(&mut link, 50, vec![acquire_two(3); 200], at(600));
    // Each call is answered in time, and what came last waits for as long as a connection may be silent.
    let mut shed_at = None;
    for ms in (1_000..4_000).step_by(400) {
        let call = link.next_call - 1;
        let asked = link.traffic.len() - link.unsent().count();
        link.on_answer(call, answer(vec![Ok(Reply::Done); asked]), at(ms));
        sent(&mut link, at(ms));
        if link.requests_shed() > 0 {
            shed_at.get_or_insert(ms);
        }
    }
    assert_eq!(shed_at, Some(2_600));
}

// Shows: T6.10.
#[test]
fn requests_that_waited_in_this_client_are_not_shed() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1)], at(0));
    push(&mut link, 2, vec![acquire(2)], at(0));
    // The process stood still in between.
    let [call] = &sent(&mut link, at(1_900))[..] else {
        panic!("both travel together");
    };
    assert_eq!((call.requests.len(), link.requests_shed()), (2, 0));
}

#[test]
fn the_time_of_a_node_counts_from_when_its_call_was_written_and_from_its_last_answer() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1)], at(0));
    let first = link.next_call(at(0)).unwrap();
    assert_eq!(link.backlog().awaited, None, "it is not written yet");
    link.on_timer(at(1_900));
    assert!(link.is_up());
    link.on_written(at(1_900));
    assert_eq!(link.backlog().awaited, Some(at(1_900)));
    push(&mut link, 2, vec![acquire(2)], at(2_000));
    assert_eq!(link.backlog().unsent, 1);
    let second = sent(&mut link, at(2_000));
    link.on_answer(first.id, answer(vec![Ok(Reply::Done)]), at(2_300));
    assert_eq!(link.backlog().awaited, Some(at(2_300)));
    link.on_answer(second[0].id, answer(vec![Ok(Reply::Done)]), at(2_400));
    let idle = Backlog {
        unsent: 0,
        awaited: None,
    };
    assert_eq!(link.backlog(), idle);
}

// Shows: T5.5.
#[test]
fn a_release_that_fails_is_repeated_until_what_it_lets_go_has_ended() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1), release(1)], at(0));
    let fails = |link: &mut Link, call: &Call, ms| {
        let replies = vec![Err("out of memory".into()); call.requests.len()];
        link.on_answer(call.id, answer(replies), at(ms));
    };
    let calls = sent(&mut link, at(0));
    for call in &calls {
        fails(&mut link, call, 10);
    }
    assert_eq!(events(&mut link), [("error", 1), ("delayed", 2)]);
    let again = sent(&mut link, at(10));
    assert_eq!(
        again[0].requests,
        [release(1)],
        "at once, on this connection"
    );
    fails(&mut link, &again[0], 20);
    assert_eq!(sent(&mut link, at(20)).len(), 0);
    assert_eq!(link.next_timer(), at(1_020), "then with pauses");
    let again = sent(&mut link, at(1_020));
    assert_eq!(again[0].requests, [release(1)]);
    events(&mut link);
    fails(&mut link, &again[0], 5_000);
    assert_eq!(events(&mut link), [("delayed", 2), ("not run", 2)]);
    assert_eq!(sent(&mut link, at(9_000))[0].requests, [], "a heartbeat");
}

#[test]
fn a_release_that_fails_for_the_first_time_has_no_other_repeated_before_its_time() {
    let mut link = up(config(), at(0));
    let fails = |link: &mut Link, ms| {
        let calls = sent(link, at(ms));
        for call in &calls {
            let replies = vec![Err("it refuses to write".into()); call.requests.len()];
            link.on_answer(call.id, answer(replies), at(ms));
        }
        calls.iter().map(|call| call.requests.len()).sum::<usize>()
    };
    push(&mut link, 1, vec![release(1), release(2)], at(0));
    assert_eq!(fails(&mut link, 0), 2);
    assert_eq!(fails(&mut link, 0), 2, "at once, the first time");
    for more in 0..10 {
        let ms = 10 * (u64::from(more) + 1);
        push(
            &mut link,
            3 + u64::from(more),
            vec![release(3 + more)],
            at(ms),
        );
        assert_eq!(fails(&mut link, ms), 1);
        assert_eq!(fails(&mut link, ms), 1, "that one alone");
    }
    assert_eq!(fails(&mut link, 1_000), 2, "after their pause");
}

// Shows: T5.5.
#[test]
fn a_release_buries_its_owner_over_another_connection() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1), release(1)], at(0));
    sent(&mut link, at(0));
    push(&mut link, 3, vec![release(2)], at(0));
    link.on_lost("reset".into(), at(100));
    assert_eq!(
        events(&mut link),
        [
            ("unknown", 1),
            ("delayed", 2),
            ("delayed", 3),
            ("disconnected", 0)
        ]
    );
    let before = link.connections;
    connect(&mut link, at(100));
    link.push(4, release(3), before, at(100));
    push(&mut link, 5, vec![release(4)], at(100));
    let calls = sent(&mut link, at(100));
    assert_eq!(
        asked(&calls),
        [tombstone(1), tombstone(2), tombstone(3), release(4)]
    );
}

// Shows: R6.8.
#[test]
fn the_end_of_a_run_travels_with_the_release_and_is_repeated_with_it() {
    let mut limits = config();
    limits.requests_per_call = 2;
    let mut link = up(limits, at(0));
    let both = [record(), release(1)];
    push(&mut link, 1, [&[acquire_two(2)], &both[..]].concat(), at(0));
    let call = sent(&mut link, at(0)).remove(0);
    assert_eq!(call.requests[1..], both);
    // The server executes none of a call that it refuses.
    let refused = RequestError::not_executed("it is busy".into());
    link.on_call_failed(call.id, &refused, false, at(1));
    let again = sent(&mut link, at(1)).remove(0);
    assert_eq!(again.requests, both);
    // A server whose memory is full frees the key, and hears of the end as soon as it can store that.
    let full = vec![Err("out of memory".into()), Ok(Reply::Done)];
    link.on_answer(again.id, answer(full), at(2));
    assert_eq!(asked(&sent(&mut link, at(1_002))), [record()]);
    // Nothing else is sent to a node that lags.
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1)], at(0));
    sent(&mut link, at(0));
    push(
        &mut link,
        2,
        [&[acquire_two(2)], &both[..]].concat(),
        at(500),
    );
    assert_eq!(asked(&sent(&mut link, at(500))), both);
    link.on_lost("reset".into(), at(600));
    connect(&mut link, at(600));
    assert_eq!(asked(&sent(&mut link, at(600))), [record(), tombstone(1)]);
}

// Shows: T5.12.
#[test]
fn releases_are_kept_while_there_is_no_connection_and_the_oldest_are_dropped() {
    let mut limits = config();
    limits.pending_releases = 2;
    let mut link = Link::new(limits, Bits(0));
    push(&mut link, 1, vec![acquire(1), release(1)], at(0));
    assert_eq!(events(&mut link), [("not run", 1), ("delayed", 2)]);
    push(&mut link, 3, vec![release(2), release(3)], at(1));
    assert_eq!(
        events(&mut link),
        [("delayed", 3), ("delayed", 4), ("not run", 2)]
    );
    connect(&mut link, at(2));
    assert_eq!(
        sent(&mut link, at(2))[0].requests,
        [tombstone(2), tombstone(3)]
    );
}
