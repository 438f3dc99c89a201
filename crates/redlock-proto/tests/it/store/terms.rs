//! Where a node stands whose server others name under an epoch.

use redlock_proto::{InformantId, Keyspace, MarkState, NamedMark, Quarantine, Roll, Store};

use super::{TTL, at, voting};

fn roll(ids: &[u64]) -> Roll {
    Roll::new(3, ids.iter().copied().map(InformantId::new))
}

fn under(epoch: u64) -> Keyspace {
    let quarantine = Quarantine::new(2 * TTL, 0.01).following_failovers();
    let roll = roll(&[1, 2, 3]);
    Keyspace::new("{test}", quarantine).in_term(NamedMark { epoch, roll })
}

fn votes(store: &mut Store, epoch: u64, ms: u64) -> bool {
    let standing = store.call(&under(epoch), &[], at(ms)).standing;
    standing.expect("it looked").state == MarkState::Voting
}

// Shows: R7.5.
#[test]
fn a_node_does_not_vote_under_another_epoch_than_that_of_its_mark() {
    for other in [6, 8] {
        let mut store = voting();
        assert!(votes(&mut store, 7, 1));
        assert!(!votes(&mut store, other, 2), "{other}");
        assert!(!votes(&mut store, 7, 3), "the quarantine is of {other}");
    }
}

// Shows: R7.12, R7.13.
#[test]
fn a_mark_is_replaced_only_if_it_is_the_one_that_was_read() {
    let mut store = voting();
    assert!(votes(&mut store, 7, 1));
    let text = store.mark(&under(7)).unwrap();
    let more = roll(&[1, 2, 3, 4]);
    assert!(store.swap_mark(&under(7), &text, Some(&more)));
    assert!(!store.swap_mark(&under(7), &text, None), "it has changed");
    assert!(votes(&mut store, 7, 2), "a roll that grows costs nothing");
    let text = store.mark(&under(7)).unwrap();
    assert!(text.ends_with(&more.to_string()), "{text}");
    assert!(store.swap_mark(&under(7), &text, None));
    assert!(!votes(&mut store, 7, 3), "no operator vouches for it now");
}
