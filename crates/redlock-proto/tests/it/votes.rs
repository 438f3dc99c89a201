//! Which votes count.

use std::{num::NonZeroUsize, time::Duration};

use redlock_proto::{ClockReading, Instant, NodeOutcome, NodeTime, Quorum, Votes};

const GRANTED: NodeOutcome = NodeOutcome::Granted { counter: 1 };
const QUARANTINED: NodeOutcome = NodeOutcome::NotAVote {
    ready_in: Some(Duration::from_secs(9)),
};
const REFUSED: NodeOutcome = NodeOutcome::Refused { remaining: None };

fn votes(outcomes: &[NodeOutcome]) -> Votes {
    let mut votes = Votes::new(Quorum::of(NonZeroUsize::new(outcomes.len()).unwrap()));
    for (node, outcome) in outcomes.iter().enumerate() {
        assert!(votes.cast(node, *outcome));
    }
    votes
}

// Shows: T1.2.
#[test]
fn a_node_votes_once() {
    let mut votes = Votes::new(Quorum::of(NonZeroUsize::new(3).unwrap()));
    assert!(votes.cast(0, GRANTED));
    assert!(!votes.cast(0, GRANTED));
    assert!(!votes.cast(3, GRANTED));
    assert_eq!(votes.granted(), 1);
    votes.close();
    assert!(!votes.cast(1, GRANTED));
    assert!(!votes.is_won());
}

/// Two addresses may lead to one server, and the operator may not know it.
// Shows: L2.5.
#[test]
fn s11_two_grants_of_one_server_are_one_vote() {
    let reading = ClockReading {
        time: NodeTime::from_micros(1),
        sent: Instant::ORIGIN,
        received: Instant::ORIGIN,
    };
    let won = |runs: [&str; 2]| {
        let mut votes = Votes::new(Quorum::of(NonZeroUsize::new(3).unwrap()));
        for (node, run) in runs.into_iter().enumerate() {
            votes.note(node, run.into(), reading);
            votes.cast(node, GRANTED);
        }
        votes.is_won()
    };
    assert!(won(["a", "b"]));
    assert!(!won(["a", "a"]));
}

/// Another client that asked for the key would count the same nodes.
// Shows: T6.4.
#[test]
fn only_nodes_that_vote_say_that_a_key_is_gone() {
    let reading = |secs| ClockReading {
        time: NodeTime::from_micros(secs * 1_000_000),
        sent: Instant::ORIGIN,
        received: Instant::ORIGIN,
    };
    let is_gone = |nodes: [(&str, u64, bool, NodeOutcome); 3]| {
        let mut votes = Votes::new(Quorum::of(NonZeroUsize::new(5).unwrap()));
        for (node, (run, secs, is_vote, outcome)) in nodes.into_iter().enumerate() {
            votes.note(node, run.into(), reading(secs));
            if !is_vote {
                votes.note_no_vote(node);
            }
            votes.cast(node, outcome);
        }
        (3..5).for_each(|node| _ = votes.cast(node, GRANTED));
        assert_eq!(votes.refused(), 3);
        assert!(!votes.may_majority_be_gone(), "all have answered");
        votes.is_majority_gone()
    };
    let gone = NodeOutcome::Missing;
    assert!(is_gone([
        ("a", 9, true, gone),
        ("b", 9, true, REFUSED),
        ("c", 9, true, gone)
    ]));
    // One has forgotten, one is another's twin, and one has a wrong clock.
    assert!(!is_gone([
        ("a", 9, true, gone),
        ("b", 9, false, gone),
        ("c", 9, true, gone)
    ]));
    assert!(!is_gone([
        ("a", 9, true, gone),
        ("b", 9, true, gone),
        ("a", 9, true, gone)
    ]));
    assert!(!is_gone([
        ("a", 9, true, gone),
        ("b", 99, true, gone),
        ("c", 9, true, gone)
    ]));
}

#[test]
fn s23_the_time_to_a_majority_is_the_right_order_statistic() {
    let held = |ms| NodeOutcome::Refused {
        remaining: Some(Duration::from_millis(ms)),
    };
    let ms = |votes: Votes| votes.majority_free_in().map(|free_in| free_in.as_millis());
    assert_eq!(
        ms(votes(&[held(1_000), held(9_000), NodeOutcome::Unknown])),
        Some(9_000)
    );
    assert_eq!(ms(votes(&[held(9_000), GRANTED, held(1_000)])), Some(1_000));
    assert_eq!(
        ms(votes(&[
            held(1_000),
            NodeOutcome::Unknown,
            NodeOutcome::NotExecuted
        ])),
        None
    );
    assert_eq!(ms(votes(&[held(1_000), REFUSED, REFUSED])), None);
}

#[test]
fn l08_a_majority_in_quarantine_is_not_free_before_it_votes() {
    let free_in = |outcomes: &[NodeOutcome]| votes(outcomes).majority_free_in();
    let nine = Some(Duration::from_secs(9));
    assert_eq!(free_in(&[QUARANTINED, QUARANTINED, GRANTED]), nine);
    let unfit = NodeOutcome::NotAVote { ready_in: None };
    assert_eq!(free_in(&[unfit, unfit, GRANTED]), None);
}

#[test]
fn the_time_to_a_quorum_counts_the_nodes_that_are_missing() {
    let quarantined = |secs| NodeOutcome::NotAVote {
        ready_in: Some(Duration::from_secs(secs)),
    };
    let secs = |votes: Votes| votes.quorum_ready_in().map(|ready| ready.as_secs());
    let (one, two) = (quarantined(1), quarantined(2));
    assert_eq!(secs(votes(&[GRANTED, one, two])), Some(1));
    assert_eq!(secs(votes(&[two, one, NodeOutcome::Unknown])), Some(2));
    assert_eq!(secs(votes(&[GRANTED, GRANTED, two])), None);
    let unfit = NodeOutcome::NotAVote { ready_in: None };
    assert_eq!(secs(votes(&[unfit, unfit, two])), None);
}

/// Every way in which N = 1 to 7 nodes can vote is decided, and only one way.
// Shows: T1.2.
#[test]
fn s12_every_split_is_decided() {
    let kinds = [GRANTED, REFUSED, QUARANTINED, NodeOutcome::Unknown];
    for nodes in 1..=7u32 {
        for split in 0..4usize.pow(nodes) {
            let outcomes: Vec<_> = (0..nodes)
                .map(|node| kinds[split / 4usize.pow(node) % 4])
                .collect();
            let votes = votes(&outcomes);
            assert_ne!(votes.is_won(), votes.is_out_of_reach(), "{outcomes:?}");
            let granted = outcomes.iter().filter(|o| **o == GRANTED).count();
            assert_eq!(votes.is_won(), 2 * granted > outcomes.len(), "{outcomes:?}");
        }
    }
}
