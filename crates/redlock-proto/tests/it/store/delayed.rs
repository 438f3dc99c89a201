//! Where a node stands whose restarts are declared to be delayed.

use redlock_proto::{Keyspace, MarkState, Quarantine, Store};

use super::{TTL, at};

fn delayed() -> Keyspace {
    let quarantine = Quarantine::new(2 * TTL, 0.01);
    Keyspace::new("{test}", quarantine.trusting_delayed_restarts())
}

fn state(store: &mut Store, ms: u64) -> MarkState {
    let standing = store.call(&delayed(), &[], at(ms)).standing;
    standing.expect("it looked").state
}

fn is_quarantined(state: &MarkState) -> bool {
    matches!(state, MarkState::Quarantined { .. })
}

#[test]
fn a_node_that_began_a_run_without_data_waits_for_its_floor_only() {
    let mut store = Store::new("run".into());
    let since = at(5);
    assert_eq!(state(&mut store, 5), MarkState::Aged { since });
    assert_eq!(state(&mut store, 900), MarkState::Aged { since });
    // A client that did not declare a delayed restart waits.
    let mut store = Store::new("run".into());
    let undeclared = Keyspace::new("{test}", Quarantine::new(2 * TTL, 0.01));
    let standing = store.call(&undeclared, &[], at(5)).standing.unwrap();
    assert!(is_quarantined(&standing.state));
}

// Shows: R1.1.
#[test]
fn a_node_that_was_emptied_while_it_ran_did_not_wait() {
    let mut store = Store::vouched_for("run".into());
    assert_eq!(state(&mut store, 0), MarkState::Voting);
    store.flush();
    assert!(is_quarantined(&state(&mut store, 1)));
    store.flush();
    assert!(is_quarantined(&state(&mut store, 2)));
}

// Shows: R1.3.
#[test]
fn a_node_that_still_has_a_mark_may_be_a_replica_that_took_over() {
    let mut store = Store::vouched_for("run".into());
    assert_eq!(state(&mut store, 0), MarkState::Voting);
    store.restart("promoted".into());
    assert!(is_quarantined(&state(&mut store, 1)));
}

// Shows: R1.2.
#[test]
fn a_node_that_took_the_data_of_another_did_not_wait() {
    let mut store = Store::vouched_for("run".into());
    assert_eq!(state(&mut store, 0), MarkState::Voting);
    // The other one was never looked at, so there is no mark.
    store.take_data_of(&Store::new("other".into()), "promoted");
    assert!(is_quarantined(&state(&mut store, 1)));
}

#[test]
fn a_node_that_cannot_remember_what_it_was_asked_waits() {
    let mut store = Store::new("run".into()).without_memory();
    assert!(is_quarantined(&state(&mut store, 0)));
}
