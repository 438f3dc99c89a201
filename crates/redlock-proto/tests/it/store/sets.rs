//! Several keys in one operation: all of them or none.

use redlock_proto::{
    HolderLabel, KeySet, Lock, LockMode, NodeKey, OwnerId, Reply, Request, Shard, Store, Verb,
};

use super::*;

/// Returns a request about several keys.
fn several(verb: Verb, keys: &[&str], by: u8) -> Request {
    let keys = keys.iter().map(|key| NodeKey::from(*key));
    Request::Lock {
        verb,
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: KeySet::new(keys).unwrap(),
            owner: owner(by),
        }
        .into(),
    }
}

fn holders(store: &Store, keys: &[&str], ms: u64) -> Vec<Option<OwnerId>> {
    let holder = |key: &&str| store.holder(&NodeKey::from(*key), at(ms));
    keys.iter().map(holder).collect()
}

const TOMBSTONE: Verb = Verb::Tombstone { ttl: TTL };

// Shows: R3.1.
#[test]
fn several_keys_are_taken_together_or_not_at_all() {
    let mut store = voting();
    ask(&mut store, several(acquire(1), &["b"], 1), at(0));
    let refused = ask(&mut store, several(acquire(1), &["a", "b", "c"], 2), at(0));
    assert!(matches!(refused, Reply::Held { .. }), "{refused:?}");
    assert_eq!(
        holders(&store, &["a", "b", "c"], 0),
        [None, Some(owner(1)), None]
    );
    ask(&mut store, several(RELEASE, &["b"], 1), at(0));
    let taken = ask(&mut store, several(acquire(1), &["a", "b", "c"], 2), at(0));
    assert!(matches!(taken, Reply::Taken { .. }), "{taken:?}");
    assert_eq!(holders(&store, &["a", "b", "c"], 0), [Some(owner(2)); 3]);
}

// Shows: R3.4.
#[test]
fn the_token_of_a_set_is_greater_than_any_before_it_of_each_key() {
    let mut store = voting();
    let taken = |counter| Reply::Taken { counter };
    assert_eq!(
        ask(&mut store, several(acquire(40), &["a"], 1), at(0)),
        taken(40)
    );
    ask(&mut store, several(RELEASE, &["a"], 1), at(0));
    assert_eq!(
        ask(&mut store, several(acquire(7), &["a", "b"], 2), at(0)),
        taken(41)
    );
    ask(&mut store, several(RELEASE, &["a", "b"], 2), at(0));
    assert_ne!(Shard::of(&"a".into()), Shard::of(&"b".into()));
    assert_eq!(
        ask(&mut store, several(acquire(1), &["b"], 3), at(0)),
        taken(42)
    );
}

#[test]
fn a_refusal_tells_of_the_key_that_stays_for_the_longest() {
    let mut store = voting();
    let short = Verb::Acquire {
        ttl: TTL / 2,
        proposal: 9,
        block: 1,
        wish: None,
        line: None,
    };
    let label: HolderLabel = "web:1".parse().unwrap();
    ask(&mut store, several(short, &["a"], 1), at(0));
    let labelled = Request::Lock {
        verb: acquire(5),
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: "b".into(),
            owner: owner(2).labelled(Some(label)),
        }
        .into(),
    };
    ask(&mut store, labelled, at(0));
    let refused = ask(&mut store, several(acquire(1), &["a", "b"], 3), at(0));
    let expected = Reply::Held {
        remaining: Some(TTL),
        counter: 9,
        holder: Some(label),
        is_shared: false,
    };
    assert_eq!(refused, expected);
}

// Shows: R3.2.
#[test]
fn an_extension_counts_only_if_every_key_is_still_the_owners() {
    let mut store = voting();
    let keys = ["a", "b"];
    ask(&mut store, several(acquire(1), &keys, 1), at(0));
    assert_eq!(
        ask(&mut store, several(EXTEND, &keys, 1), at(4_000)),
        Reply::Done
    );
    ask(&mut store, several(RELEASE, &["b"], 1), at(4_000));
    assert_eq!(
        ask(&mut store, several(EXTEND, &keys, 1), at(8_000)),
        Reply::Missing
    );
    assert_eq!(holders(&store, &keys, 14_000), [Some(owner(1)), None]);
    assert_eq!(
        holders(&store, &keys, 14_001),
        [None, None],
        "it was not extended"
    );
    ask(&mut store, several(acquire(1), &["b"], 2), at(9_000));
    let refused = ask(&mut store, several(EXTEND, &keys, 1), at(9_000));
    assert!(
        matches!(refused, Reply::Held { counter: 0, .. }),
        "{refused:?}"
    );
}

// Shows: R3.2.
#[test]
fn what_is_missing_of_a_set_is_healed_unless_another_has_a_part_of_it() {
    let heal = Verb::Heal {
        ttl: TTL,
        counter: 50,
    };
    let mut store = voting();
    let keys = ["a", "b"];
    ask(&mut store, several(acquire(1), &keys, 1), at(0));
    ask(&mut store, several(RELEASE, &["b"], 1), at(0));
    assert_eq!(
        ask(&mut store, several(heal, &keys, 1), at(5_000)),
        Reply::Done
    );
    assert_eq!(holders(&store, &keys, 15_000), [Some(owner(1)); 2]);
    let next = ask(&mut store, several(acquire(1), &keys, 2), at(15_001));
    assert_eq!(next, Reply::Taken { counter: 51 });
    ask(&mut store, several(RELEASE, &["a"], 2), at(15_001));
    let refused = ask(&mut store, several(heal, &keys, 1), at(15_001));
    assert!(matches!(refused, Reply::Held { .. }), "{refused:?}");
    assert_eq!(holders(&store, &keys, 15_001), [None, Some(owner(2))]);
}

// Shows: R3.3.
#[test]
fn what_is_left_of_a_set_is_let_go_and_a_tombstone_is_for_all_of_it() {
    let mut store = voting();
    let keys = ["a", "b", "c"];
    ask(&mut store, several(acquire(1), &keys, 1), at(0));
    ask(&mut store, several(RELEASE, &["a"], 1), at(0));
    ask(&mut store, several(acquire(1), &["a"], 2), at(0));
    assert_eq!(
        ask(&mut store, several(TOMBSTONE, &keys, 1), at(0)),
        Reply::Done
    );
    assert_eq!(holders(&store, &keys, 0), [Some(owner(2)), None, None]);
    let late = ask(&mut store, several(acquire(1), &["b", "c"], 1), at(0));
    assert_eq!(late, Reply::Tombstoned);
    let missing = ask(&mut store, several(RELEASE, &["b", "c"], 1), at(0));
    assert_eq!(missing, Reply::Missing);
    let others = ask(&mut store, several(RELEASE, &keys, 1), at(0));
    assert!(matches!(others, Reply::Held { .. }), "{others:?}");
}
