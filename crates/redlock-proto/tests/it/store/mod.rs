//! The model of a node.

mod grants;
mod jobs;
mod sets;
mod shared;
mod terms;
mod transactions;

use std::time::Duration;

use redlock_proto::{
    FencingToken, Keyspace, Lock, LockMode, MarkState, NodeKey, NodeTime, NodeVerb, OwnerId,
    Quarantine, Reply, Request, Store, Verb,
};

const TTL: Duration = Duration::from_secs(10);

fn keyspace() -> Keyspace {
    Keyspace::new("{test}", Quarantine::new(2 * TTL, 0.01))
}

fn at(ms: u64) -> NodeTime {
    NodeTime::from_micros(ms * 1_000)
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap()
}

fn owner(owner: u8) -> OwnerId {
    OwnerId::from_random([owner; 16])
}

fn request(verb: Verb, by: u8) -> Request {
    Request::Lock {
        verb,
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: "key".into(),
            owner: owner(by),
        }
        .into(),
    }
}

fn acquire(proposal: u64) -> Verb {
    Verb::Acquire {
        ttl: TTL,
        proposal,
        block: 1,
        wish: None,
        line: None,
    }
}

const EXTEND: Verb = Verb::Extend {
    ttl: TTL,
    write_back: None,
};
const RELEASE: Verb = Verb::Release { ttl: TTL };

fn ask(store: &mut Store, request: Request, time: NodeTime) -> Reply {
    let mut answer = store.call(&keyspace(), &[request], time);
    answer.replies.remove(0).expect("the request is in range")
}

fn voting() -> Store {
    Store::vouched_for("run".into())
}

fn state(store: &mut Store, time: NodeTime) -> MarkState {
    let standing = store.call(&keyspace(), &[], time).standing;
    standing.expect("an empty call looks").state
}

fn open(store: &mut Store, since: NodeTime, time: NodeTime) -> Reply {
    told(store, since, Some(time), time)
}

fn bless(store: &mut Store, since: NodeTime, time: NodeTime) -> Reply {
    told(store, since, None, time)
}

fn told(store: &mut Store, since: NodeTime, horizon: Option<NodeTime>, time: NodeTime) -> Reply {
    let floor = 1_000;
    let open = NodeVerb::Open {
        floor,
        since,
        horizon,
    };
    ask(store, Request::Node(open), time)
}

/// Looks every half step until `until`.
fn age(store: &mut Store, from: u64, until: u64) -> MarkState {
    let half = millis(keyspace().quarantine().step()) / 2;
    let mut last = state(store, at(from));
    let mut time = from;
    while time + half <= until {
        time += half;
        last = state(store, at(time));
    }
    last
}

// Shows: T1.5.
#[test]
fn a_key_is_one_owners_up_to_its_last_millisecond() {
    let mut store = voting();
    let taken = ask(&mut store, request(acquire(5), 1), at(0));
    assert_eq!(taken, Reply::Taken { counter: 5 });
    let held = |ms| Reply::Held {
        remaining: Some(Duration::from_millis(ms)),
        counter: 5,
        holder: None,
        is_shared: false,
    };
    assert_eq!(
        ask(&mut store, request(acquire(1), 2), at(3_000)),
        held(7_000)
    );
    assert_eq!(ask(&mut store, request(acquire(1), 2), at(10_000)), held(1));
    let taken = ask(&mut store, request(acquire(1), 2), at(10_001));
    assert_eq!(taken, Reply::Taken { counter: 6 });
}

#[test]
fn a_clock_that_is_set_back_brings_back_what_no_request_has_named_since() {
    let mut store = voting();
    let named = ["named", "unnamed", "unnamed too"].map(NodeKey::from);
    for key in &named {
        let take = Request::Lock {
            verb: acquire(1),
            lock: Lock {
                mode: LockMode::Exclusive,
                keys: key.clone().into(),
                owner: owner(1),
            }
            .into(),
        };
        ask(&mut store, take, at(0));
    }
    let there = |store: &Store| named.each_ref().map(|k| store.holder(k, at(5)).is_some());
    let release = Request::Lock {
        verb: RELEASE,
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: "named".into(),
            owner: owner(2),
        }
        .into(),
    };
    ask(&mut store, release, at(10_001));
    assert_eq!(there(&store), [false, true, true]);
    store.expire(at(10_001));
    assert_eq!(there(&store), [false, false, false]);
}

// Shows: T1.8.
#[test]
fn s04_extending_a_missing_key_does_not_create_it() {
    let mut store = voting();
    assert_eq!(ask(&mut store, request(EXTEND, 1), at(0)), Reply::Missing);
    assert_eq!(store.locks(at(0)), 0);
}

// Shows: T1.5.
#[test]
fn s21_a_key_is_not_touched_for_another_owner() {
    let mut store = voting();
    ask(&mut store, request(acquire(5), 1), at(0));
    let heal = Verb::Heal {
        ttl: 5 * TTL,
        counter: 99,
    };
    for verb in [RELEASE, EXTEND, heal, Verb::Tombstone { ttl: TTL }] {
        let held = Reply::Held {
            remaining: Some(Duration::from_secs(8)),
            counter: 0,
            holder: None,
            is_shared: false,
        };
        assert_eq!(ask(&mut store, request(verb, 2), at(2_000)), held);
    }
    assert_eq!(ask(&mut store, request(RELEASE, 1), at(2_000)), Reply::Done);
    assert_eq!(
        ask(&mut store, request(RELEASE, 1), at(2_000)),
        Reply::Missing
    );
}

// Shows: T5.4.
#[test]
fn s28_a_tombstoned_owner_takes_nothing_any_more() {
    let mut store = voting();
    let tombstone = request(Verb::Tombstone { ttl: TTL }, 1);
    assert_eq!(ask(&mut store, tombstone, at(0)), Reply::Missing);
    assert_eq!(
        ask(&mut store, request(acquire(5), 1), at(9_000)),
        Reply::Tombstoned
    );
    let other = ask(&mut store, request(acquire(5), 2), at(9_000));
    assert_eq!(other, Reply::Taken { counter: 5 });
}

// Shows: L1.3, L1.6.
#[test]
fn s15_a_node_that_forgot_does_not_vote_for_longer_than_the_longest_lease() {
    let mut store = voting();
    assert_eq!(state(&mut store, at(0)), MarkState::Voting);
    store.flush();
    let length = millis(keyspace().quarantine().length());
    assert!(matches!(
        age(&mut store, 1_000, 1_000 + length - 1),
        MarkState::Quarantined { .. }
    ));
    let since = at(1_000);
    let aged = age(&mut store, 1_000 + length - 1, 1_000 + length + 400);
    assert_eq!(aged, MarkState::Aged { since });
    let time = at(1_000 + length + 400);
    assert_eq!(open(&mut store, at(999), time), Reply::Missing);
    assert_eq!(open(&mut store, since, time), Reply::Done);
    assert_eq!(state(&mut store, time), MarkState::Voting);
    let taken = ask(&mut store, request(acquire(5), 1), time);
    assert_eq!(taken, Reply::Taken { counter: 1_001 });
}

// Shows: L1.2.
#[test]
fn s16_a_node_with_anothers_mark_does_not_vote() {
    let mut store = voting();
    state(&mut store, at(0));
    store.restart("promoted".into());
    assert!(matches!(
        state(&mut store, at(1)),
        MarkState::Quarantined { .. }
    ));
    let trusting = Keyspace::new(
        "{trusting}",
        Quarantine::new(2 * TTL, 0.01).trusting_persistence(),
    );
    let voting_in = |store: &mut Store| {
        let standing = store.call(&trusting, &[], at(1)).standing;
        standing.expect("it looked").state == MarkState::Voting
    };
    let mut persistent = voting();
    assert!(voting_in(&mut persistent));
    persistent.restart("again".into());
    assert!(voting_in(&mut persistent), "it has its data");
    persistent.flush();
    assert!(!voting_in(&mut persistent), "it has lost its data");
}

// Shows: L1.2.
#[test]
fn s16_a_node_that_has_anothers_data_does_not_vote_though_its_run_goes_on() {
    for trusts in [false, true] {
        let quarantine = Quarantine::new(2 * TTL, 0.01);
        let quarantine = if trusts {
            quarantine.trusting_persistence()
        } else {
            quarantine
        };
        let keyspace = Keyspace::new("{test}", quarantine);
        let state =
            |store: &mut Store, time| store.call(&keyspace, &[], time).standing.unwrap().state;
        let mut store = Store::vouched_for("run".into());
        assert_eq!(state(&mut store, at(0)), MarkState::Voting);
        // A replica has copied it, and leads for a while.
        let copy = store.clone();
        store.call(&keyspace, &[request(acquire(1), 1)], at(1));
        store.take_data_of(&copy, "promoted");
        assert_eq!(store.run().as_str(), "run");
        assert!(matches!(
            state(&mut store, at(2)),
            MarkState::Quarantined { .. }
        ));
    }
}

// Shows: L1.4.
#[test]
fn s13_a_clock_that_is_set_forward_does_not_end_the_quarantine() {
    let mut store = Store::new("run".into());
    state(&mut store, at(0));
    let ready_in = |state| match state {
        MarkState::Quarantined { ready_in, .. } => ready_in,
        other => panic!("{other:?}"),
    };
    let before = ready_in(state(&mut store, at(1)));
    let after = ready_in(state(&mut store, at(3_600_000)));
    assert_eq!(before - after, keyspace().quarantine().step());
    let back = ready_in(state(&mut store, at(5)));
    assert_eq!(back, after);
}

#[test]
fn an_operator_may_vouch_for_a_node() {
    let mut store = Store::new("run".into());
    state(&mut store, at(7));
    assert_eq!(open(&mut store, at(7), at(8)), Reply::Missing);
    assert_eq!(bless(&mut store, at(7), at(8)), Reply::Done);
    assert_eq!(state(&mut store, at(9)), MarkState::Voting);
}

// Shows: A4.
#[test]
fn clients_with_another_longest_time_to_live_are_refused() {
    let mut store = voting();
    state(&mut store, at(0));
    let shorter = Keyspace::new("{test}", Quarantine::new(TTL, 0.01));
    let answer = store.call(&shorter, &[request(acquire(1), 1)], at(1));
    let theirs = "20000ms,10000ppm,v4".into();
    assert_eq!(
        answer.standing.map(|s| s.state),
        Some(MarkState::PolicyMismatch { theirs })
    );
    assert_eq!(answer.replies, [Ok(Reply::PolicyMismatch)]);
    assert_eq!(store.locks(at(1)), 0);
}

// Shows: A4.
#[test]
fn clients_with_another_clock_rate_error_are_refused() {
    let mut store = voting();
    state(&mut store, at(0));
    let laxer = Keyspace::new("{test}", Quarantine::new(2 * TTL, 0.001));
    let answer = store.call(&laxer, &[request(acquire(1), 1)], at(1));
    assert_eq!(answer.replies, [Ok(Reply::PolicyMismatch)]);
}

// Shows: T3.10.
#[test]
fn a_counter_beyond_its_range_is_an_error_and_takes_nothing() {
    let mut store = voting();
    let beyond = request(acquire(FencingToken::MAX.get() + 1), 1);
    let answer = store.call(&keyspace(), &[beyond], at(0));
    assert!(answer.replies[0].is_err());
    assert_eq!(store.locks(at(0)), 0);
    let last = request(acquire(FencingToken::MAX.get()), 1);
    assert!(matches!(ask(&mut store, last, at(0)), Reply::Taken { .. }));
}

#[test]
fn l09_keys_used_once_do_not_accumulate() {
    let mut store = voting();
    for key in 0..100_000u64 {
        let request = Request::Lock {
            verb: Verb::Acquire {
                ttl: Duration::from_millis(50),
                proposal: 1,
                block: 1,
                wish: None,
                line: None,
            },
            lock: Lock {
                mode: LockMode::Exclusive,
                keys: NodeKey::from(key.to_string()).into(),
                owner: owner(1),
            }
            .into(),
        };
        assert!(matches!(
            ask(&mut store, request, at(key)),
            Reply::Taken { .. }
        ));
        // Expired keys count as well, by a clock that is far behind.
        let kept = store.locks(at(0));
        assert!(kept <= 200, "{kept} keys are kept");
    }
}
