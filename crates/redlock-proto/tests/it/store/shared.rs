//! Keys that several owners share, and owners that wait for them in exclusive mode.

use std::time::Duration;

use redlock_proto::{KeySet, Lock, LockMode, NodeKey, Reply, Request, Store, Verb};

use super::*;

const HEAL: Verb = Verb::Heal {
    ttl: TTL,
    counter: 1,
};

/// Returns a request of an owner that shares these keys.
fn shared(verb: Verb, keys: &[&str], number: u8) -> Request {
    in_mode(LockMode::Shared, verb, keys, number)
}

fn alone(verb: Verb, keys: &[&str], number: u8) -> Request {
    in_mode(LockMode::Exclusive, verb, keys, number)
}

fn in_mode(mode: LockMode, verb: Verb, keys: &[&str], number: u8) -> Request {
    let keys = keys.iter().map(|key| NodeKey::from(*key));
    Request::Lock {
        verb,
        lock: Lock {
            mode,
            keys: KeySet::new(keys).expect("they are a few"),
            owner: owner(number),
        }
        .into(),
    }
}

/// Returns an acquire by an owner that waits, with a wish for `ms` milliseconds.
fn waiting(ms: u64) -> Verb {
    let Verb::Acquire {
        ttl,
        proposal,
        block,
        ..
    } = acquire(1)
    else {
        unreachable!("it is an acquire")
    };
    Verb::Acquire {
        ttl,
        proposal,
        block,
        wish: Some(Duration::from_millis(ms)),
        line: None,
    }
}

fn held(reply: &Reply) -> (u64, bool) {
    match reply {
        Reply::Held {
            remaining,
            is_shared,
            ..
        } => {
            let remaining = remaining.expect("keys of leases end");
            (u64::try_from(remaining.as_millis()).unwrap(), *is_shared)
        }
        other => panic!("{other:?}"),
    }
}

fn is_taken(reply: &Reply) -> bool {
    matches!(reply, Reply::Taken { .. })
}

// Shows: R4.1.
#[test]
fn s26_any_number_share_a_key_and_nobody_has_it_alone_beside_them() {
    let mut store = voting();
    for number in 1..=3 {
        let taken = ask(
            &mut store,
            shared(acquire(1), &["a"], number),
            at(u64::from(number)),
        );
        assert!(is_taken(&taken), "{taken:?}");
    }
    let (remaining, is_shared) = held(&ask(&mut store, alone(acquire(1), &["a"], 9), at(3)));
    assert_eq!(
        (remaining, is_shared),
        (10_000, true),
        "up to when the last leaves"
    );
    for number in 1..=3 {
        let again = held(&ask(&mut store, shared(acquire(1), &["a"], number), at(4)));
        assert!(!again.1, "its own is in its way");
        let released = ask(&mut store, shared(RELEASE, &["a"], number), at(4));
        assert_eq!(released, Reply::Done);
    }
    assert!(is_taken(&ask(
        &mut store,
        alone(acquire(1), &["a"], 9),
        at(4)
    )));
    assert_eq!(store.locks(at(4)), 1);
    let (_, is_shared) = held(&ask(&mut store, shared(acquire(1), &["a"], 1), at(4)));
    assert!(!is_shared, "one has it alone");
}

// Shows: R4.1, R4.2.
#[test]
fn s26_each_who_shares_a_key_has_a_time_of_its_own() {
    let mut store = voting();
    for (number, ms) in [(1, 0), (2, 5_000)] {
        assert!(is_taken(&ask(
            &mut store,
            shared(acquire(1), &["a"], number),
            at(ms)
        )));
    }
    // The first is over, and the other is not in its way: it may be healed.
    for verb in [EXTEND, RELEASE] {
        let over = ask(&mut store, shared(verb, &["a"], 1), at(10_001));
        assert_eq!(over, Reply::Missing);
    }
    let extended = ask(&mut store, shared(EXTEND, &["a"], 2), at(10_001));
    assert_eq!(extended, Reply::Done);
    let alone = ask(&mut store, alone(acquire(1), &["a"], 9), at(14_000));
    assert_eq!(held(&alone), (6_001, true));
    let missing = ask(&mut store, shared(EXTEND, &["a"], 2), at(20_002));
    assert_eq!(missing, Reply::Missing);
}

/// Servers differ on a key that is written to end in the present millisecond.
// Shows: R4.2.
#[test]
fn what_a_release_leaves_of_a_shared_key_lasts_into_the_next_millisecond() {
    let mut store = voting();
    for (number, ms) in [(1, 0), (2, 5_000)] {
        let taken = ask(&mut store, shared(acquire(1), &["a"], number), at(ms));
        assert!(is_taken(&taken), "{taken:?}");
    }
    let released = ask(&mut store, shared(RELEASE, &["a"], 2), at(10_000));
    assert_eq!(released, Reply::Done);
    let mut alone = |ms| ask(&mut store, alone(acquire(1), &["a"], 9), at(ms));
    assert_eq!(held(&alone(10_001)), (1, true));
    assert!(is_taken(&alone(10_002)));
}

// Shows: R4.8.
#[test]
fn who_waits_to_have_a_key_alone_lets_nobody_else_share_it() {
    let mut store = voting();
    assert!(is_taken(&ask(
        &mut store,
        shared(acquire(1), &["a"], 1),
        at(0)
    )));
    let refused = ask(&mut store, alone(waiting(500), &["a"], 9), at(100));
    assert_eq!(held(&refused), (9_900, true));
    let newcomer = ask(&mut store, shared(acquire(1), &["a"], 2), at(200));
    assert_eq!(held(&newcomer), (400, false));
    // An owner that shares the key extends it, and can be healed.
    for verb in [EXTEND, HEAL] {
        assert_eq!(
            ask(&mut store, shared(verb, &["a"], 1), at(300)),
            Reply::Done
        );
    }
    assert_eq!(
        ask(&mut store, shared(RELEASE, &["a"], 1), at(300)),
        Reply::Done
    );
    let newcomer = ask(&mut store, shared(acquire(1), &["a"], 2), at(300));
    assert_eq!(held(&newcomer), (300, false), "it stays for who waits");
    let (_, is_shared) = held(&ask(&mut store, alone(acquire(1), &["a"], 8), at(300)));
    assert!(is_shared, "whoever does not wait waits for who does");
    assert!(is_taken(&ask(
        &mut store,
        alone(waiting(500), &["a"], 9),
        at(400)
    )));
    assert_eq!(
        ask(&mut store, alone(RELEASE, &["a"], 9), at(400)),
        Reply::Done
    );
    assert!(is_taken(&ask(
        &mut store,
        shared(acquire(1), &["a"], 2),
        at(400)
    )));
}

// Shows: R4.8.
#[test]
fn a_wish_ends_by_itself() {
    let mut store = voting();
    ask(&mut store, shared(acquire(1), &["a"], 1), at(0));
    ask(&mut store, alone(waiting(500), &["a"], 9), at(0));
    ask(&mut store, shared(RELEASE, &["a"], 1), at(0));
    assert_eq!(
        held(&ask(&mut store, shared(acquire(1), &["a"], 2), at(500))),
        (1, false)
    );
    assert!(is_taken(&ask(
        &mut store,
        shared(acquire(1), &["a"], 2),
        at(501)
    )));
}

// Shows: R4.3.
#[test]
fn who_has_a_key_alone_can_share_it_and_not_the_other_way_round() {
    let mut store = voting();
    ask(&mut store, alone(acquire(1), &["a"], 1), at(0));
    assert_eq!(
        ask(&mut store, shared(EXTEND, &["a"], 1), at(1)),
        Reply::Done
    );
    assert!(is_taken(&ask(
        &mut store,
        shared(acquire(1), &["a"], 2),
        at(1)
    )));
    // What it asked for before is late.
    let (_, is_shared) = held(&ask(&mut store, alone(EXTEND, &["a"], 1), at(1)));
    assert!(!is_shared, "only who wants to take it is told");
    ask(&mut store, shared(RELEASE, &["a"], 2), at(1));
    held(&ask(&mut store, alone(EXTEND, &["a"], 1), at(1)));
    assert_eq!(
        ask(&mut store, shared(RELEASE, &["a"], 1), at(1)),
        Reply::Done
    );
    assert_eq!(store.locks(at(1)), 0);
}

#[test]
fn no_more_share_a_key_than_a_node_remembers() {
    let mut store = voting();
    for number in 0..64 {
        let at = at(u64::from(number));
        assert!(is_taken(&ask(
            &mut store,
            shared(acquire(1), &["a"], number),
            at
        )));
    }
    let full = held(&ask(&mut store, shared(acquire(1), &["a"], 99), at(100)));
    assert_eq!(full, (9_900, false), "until the first leaves");
    assert!(is_taken(&ask(
        &mut store,
        shared(acquire(1), &["a"], 99),
        at(10_001)
    )));
}

// Shows: R4.5.
#[test]
fn sets_are_shared_all_or_none_and_counted_as_others_are() {
    let mut store = voting();
    ask(&mut store, alone(acquire(1), &["b"], 1), at(0));
    let refused = ask(&mut store, shared(acquire(1), &["a", "b"], 2), at(0));
    assert!(!held(&refused).1);
    assert_eq!(store.locks(at(0)), 1, "nothing of it is taken");
    ask(&mut store, alone(RELEASE, &["b"], 1), at(0));
    let Reply::Taken { counter: first } =
        ask(&mut store, shared(acquire(1), &["a", "b"], 2), at(0))
    else {
        panic!("nobody has them");
    };
    let Reply::Taken { counter: second } = ask(&mut store, shared(acquire(1), &["b"], 3), at(0))
    else {
        panic!("they share it");
    };
    assert!(second > first, "who shares counts too");
    ask(&mut store, shared(RELEASE, &["a", "b"], 2), at(0));
    assert!(is_taken(&ask(
        &mut store,
        alone(acquire(1), &["a"], 4),
        at(0)
    )));
    held(&ask(&mut store, alone(acquire(1), &["b"], 4), at(0)));
}

// Shows: R4.2.
#[test]
fn a_tombstone_refuses_who_would_share() {
    let mut store = voting();
    ask(&mut store, shared(acquire(1), &["a"], 1), at(0));
    let tombstone = Verb::Tombstone { ttl: TTL };
    assert_eq!(
        ask(&mut store, shared(tombstone, &["a"], 1), at(0)),
        Reply::Done
    );
    for verb in [acquire(1), HEAL] {
        let late = ask(&mut store, shared(verb, &["a"], 1), at(1));
        assert_eq!(late, Reply::Tombstoned);
    }
    assert_eq!(store.locks(at(1)), 0);
}

/// Returns a request of owner `number` over the shared lease of owner `of`.
fn over(of: u8, verb: Verb, keys: &[&str], number: u8) -> Request {
    in_mode(
        LockMode::Upgrade {
            of: owner(of).secret(),
        },
        verb,
        keys,
        number,
    )
}

/// Returns a store in which owner 1 shares key `a`.
fn read() -> Store {
    let mut store = voting();
    assert!(is_taken(&ask(
        &mut store,
        shared(acquire(1), &["a"], 1),
        at(0)
    )));
    store
}

// Shows: R4.4.
#[test]
fn s26_the_only_reader_has_it_alone_beside_its_own_shared_lease() {
    let mut store = read();
    let taken = ask(&mut store, over(1, acquire(1), &["a"], 2), at(1));
    assert!(is_taken(&taken), "{taken:?}");
    for request in [
        shared(acquire(1), &["a"], 3),
        shared(HEAL, &["a"], 3),
        alone(acquire(1), &["a"], 3),
        alone(waiting(500), &["a"], 3),
        over(1, acquire(1), &["a"], 3),
    ] {
        held(&ask(&mut store, request, at(2)));
    }
    // Both go on, each for itself.
    for request in [
        shared(EXTEND, &["a"], 1),
        over(1, EXTEND, &["a"], 2),
        over(1, HEAL, &["a"], 2),
    ] {
        assert_eq!(ask(&mut store, request, at(3)), Reply::Done);
    }
    let mut released = store.clone();
    // The shared one is released: the other is like any that was acquired alone.
    assert_eq!(
        ask(&mut released, shared(RELEASE, &["a"], 1), at(4)),
        Reply::Done
    );
    assert_eq!(released.holder(&"a".into(), at(4)), Some(owner(2)));
    for request in [alone(EXTEND, &["a"], 2), over(1, RELEASE, &["a"], 2)] {
        assert_eq!(ask(&mut released, request, at(5)), Reply::Done);
    }
    assert_eq!(released.locks(at(5)), 0);
    // Or the other one is, and others may share it again, once the wish is over.
    assert_eq!(
        ask(&mut store, over(1, RELEASE, &["a"], 2), at(600)),
        Reply::Done
    );
    assert!(is_taken(&ask(
        &mut store,
        shared(acquire(1), &["a"], 3),
        at(600)
    )));
}

// Shows: R4.4.
#[test]
fn an_upgrade_with_two_readers_is_refused() {
    let mut store = read();
    assert!(is_taken(&ask(
        &mut store,
        shared(acquire(1), &["a"], 2),
        at(1)
    )));
    let (remaining, is_shared) = held(&ask(&mut store, over(1, acquire(1), &["a"], 3), at(2)));
    assert_eq!((remaining, is_shared), (9_999, true), "the other's time");
    // Once that is over it is not in the way, nor is a wish.
    let wished = ask(&mut store, alone(waiting(60_000), &["a"], 9), at(3));
    assert!(held(&wished).1);
    assert_eq!(
        ask(&mut store, shared(EXTEND, &["a"], 1), at(9_000)),
        Reply::Done
    );
    assert!(is_taken(&ask(
        &mut store,
        over(1, acquire(1), &["a"], 3),
        at(10_002)
    )));
}

// Shows: R4.4.
#[test]
fn an_upgrade_of_several_keys_is_of_all_or_of_none() {
    let mut store = read();
    let taken = ask(&mut store, shared(acquire(1), &["b"], 1), at(0));
    assert!(is_taken(&taken), "{taken:?}");
    assert!(is_taken(&ask(
        &mut store,
        shared(acquire(1), &["b"], 2),
        at(0)
    )));
    held(&ask(&mut store, over(1, acquire(1), &["a", "b"], 3), at(1)));
    assert!(is_taken(&ask(
        &mut store,
        shared(acquire(1), &["a"], 4),
        at(2)
    )));
}

// Shows: R4.4.
#[test]
fn who_upgraded_and_shares_it_again_is_one_of_those_who_do() {
    let mut store = read();
    assert!(is_taken(&ask(
        &mut store,
        over(1, acquire(1), &["a"], 2),
        at(1)
    )));
    assert_eq!(
        ask(&mut store, shared(EXTEND, &["a"], 2), at(2)),
        Reply::Done
    );
    assert!(is_taken(&ask(
        &mut store,
        shared(acquire(1), &["a"], 3),
        at(3)
    )));
    let key = "a".into();
    let mut holders = store.holders(&key, at(3));
    assert!(holders.all(|(_, mode)| mode == LockMode::Shared));
}
