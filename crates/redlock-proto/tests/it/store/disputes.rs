//! The memory of a node for the keys that it refused.

use redlock_proto::{Reply, Store};

use super::{EXTEND, acquire, ask, at, request, voting};

fn extend(store: &mut Store, ms: u64) -> Reply {
    ask(store, request(EXTEND, 1), at(ms))
}

fn refuse(store: &mut Store, ms: u64) {
    let refused = ask(store, request(acquire(2), 2), at(ms));
    assert!(matches!(refused, Reply::Held { .. }));
}

#[test]
fn a_holder_hears_that_nobody_was_refused_its_key_lately() {
    let mut store = voting();
    ask(&mut store, request(acquire(1), 1), at(0));
    assert_eq!(extend(&mut store, 1), Reply::Undisputed);
    refuse(&mut store, 3_900);
    assert_eq!(extend(&mut store, 3_901), Reply::Done);
    assert_eq!(extend(&mut store, 7_999), Reply::Done);
    assert_eq!(extend(&mut store, 8_000), Reply::Undisputed);
    refuse(&mut store, 8_001);
    refuse(&mut store, 12_001);
    assert_eq!(extend(&mut store, 15_000), Reply::Done);
    assert_eq!(extend(&mut store, 19_999), Reply::Done, "the last counts");
    assert_eq!(extend(&mut store, 20_000), Reply::Undisputed);
}

#[test]
fn what_was_refused_stays_refused_when_the_key_changes_hands() {
    let mut store = voting();
    ask(&mut store, request(acquire(1), 3), at(0));
    refuse(&mut store, 1);
    ask(&mut store, request(super::RELEASE, 3), at(2));
    ask(&mut store, request(acquire(3), 1), at(3));
    assert_eq!(extend(&mut store, 4), Reply::Done);
}

#[test]
fn a_node_without_memory_says_nothing_of_others() {
    let mut store = voting().without_memory();
    ask(&mut store, request(acquire(1), 1), at(0));
    assert_eq!(extend(&mut store, 1), Reply::Done);
}

#[test]
fn another_run_remembers_nobody() {
    let mut store = voting();
    ask(&mut store, request(acquire(1), 1), at(0));
    refuse(&mut store, 1);
    store.restart("another".into());
    assert_eq!(extend(&mut store, 2), Reply::Undisputed);
}
