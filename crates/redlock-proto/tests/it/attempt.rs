//! Attempts: when they are won, lost and given back.

use std::{num::NonZeroUsize, time::Duration};

use redlock_proto::{
    Attempt, AttemptVerdict, Failure, FailureKind, GiveBack, Instant, NodeOutcome, Quorum, Settled,
    Timing,
};

const GRANTED: NodeOutcome = NodeOutcome::Granted { counter: 7 };
const HELD: NodeOutcome = NodeOutcome::Refused {
    remaining: Some(Duration::from_secs(1)),
};

fn ms(ms: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(ms))
}

fn attempt(nodes: usize) -> Attempt {
    let quorum = Quorum::of(NonZeroUsize::new(nodes).unwrap());
    let timing = Timing::new(Duration::from_secs(1), 0.01, Duration::from_millis(100)).unwrap();
    Attempt::start(quorum, timing, ms(0))
}

/// Feeds outcomes that must not decide, then one that must.
fn decided(
    attempt: &mut Attempt,
    before: &[(usize, NodeOutcome)],
    (node, last, at): (usize, NodeOutcome, u64),
) -> AttemptVerdict {
    for (node, outcome) in before {
        assert_eq!(attempt.on_outcome(*node, *outcome, ms(1)), None);
    }
    attempt
        .on_outcome(node, last, ms(at))
        .expect("this outcome decides")
}

fn nodes(give_back: &[GiveBack]) -> Vec<usize> {
    give_back.iter().map(|back| back.node).collect()
}

fn failure(verdict: AttemptVerdict) -> Failure {
    match verdict {
        AttemptVerdict::Failed(failure) => failure,
        AttemptVerdict::Granted(grant) => panic!("granted until {}", grant.deadline),
    }
}

// Shows: T1.1.
#[test]
fn s01_a_majority_after_the_ttl_is_refused_and_freed() {
    let granted = [(0, GRANTED)];
    let late = decided(&mut attempt(3), &granted, (1, GRANTED, 879));
    let late = failure(late);
    assert_eq!(
        (late.kind, nodes(&late.give_back)),
        (FailureKind::Expired, vec![0, 1, 2])
    );

    let in_time = decided(&mut attempt(3), &granted, (1, GRANTED, 878));
    let AttemptVerdict::Granted(grant) = in_time else {
        panic!("{in_time:?}")
    };
    assert_eq!((grant.start, grant.deadline), (ms(0), ms(978)));
    assert_eq!(grant.settled, Settled::Agreed(7));
}

#[test]
fn l01_a_hung_minority_is_not_waited_for() {
    let granted = [(4, GRANTED), (0, GRANTED)];
    let verdict = decided(&mut attempt(5), &granted, (2, GRANTED, 1));
    assert!(matches!(verdict, AttemptVerdict::Granted(_)));
}

#[test]
fn l02_a_dead_minority_does_not_fail_the_attempt() {
    let before = [(0, NodeOutcome::NotExecuted), (1, GRANTED)];
    let verdict = decided(&mut attempt(3), &before, (2, GRANTED, 1));
    assert!(matches!(verdict, AttemptVerdict::Granted(_)));
}

// Shows: T1.2.
#[test]
fn l04_a_failed_attempt_frees_what_it_took_before_the_next() {
    let mut attempt = attempt(5);
    let before = [(0, GRANTED), (1, HELD), (2, NodeOutcome::NotExecuted)];
    let failure = failure(decided(&mut attempt, &before, (3, HELD, 2)));
    // Node 4 has not answered yet, so it may still grant.
    assert_eq!(nodes(&failure.give_back), [0, 4]);
    assert_eq!(failure.kind, FailureKind::Contended);
    assert_eq!(attempt.on_outcome(4, GRANTED, ms(3)), None);
}

#[test]
fn too_few_nodes_up_is_no_quorum_whoever_holds_the_key() {
    let contended = decided(
        &mut attempt(4),
        &[(0, HELD)],
        (1, NodeOutcome::NotExecuted, 1),
    );
    assert_eq!(failure(contended).kind, FailureKind::Contended);

    let mut silent = attempt(4);
    assert_eq!(silent.on_outcome(0, GRANTED, ms(1)), None);
    assert_eq!(silent.on_outcome(1, NodeOutcome::NotExecuted, ms(1)), None);
    let silent = failure(silent.on_time_limit(ms(50)).expect("the limit decides"));
    assert_eq!(
        (silent.kind, nodes(&silent.give_back)),
        (FailureKind::NoQuorum, vec![0, 2, 3])
    );
}

// Shows: T5.1.
#[test]
fn l03_an_abandoned_attempt_frees_what_it_took_and_what_it_may_take() {
    let mut attempt = attempt(3);
    assert_eq!(attempt.on_outcome(0, HELD, ms(1)), None);
    assert_eq!(attempt.on_outcome(1, GRANTED, ms(1)), None);
    let failure = failure(attempt.on_abandoned(ms(2)).expect("nobody waits"));
    assert_eq!(
        (failure.kind, nodes(&failure.give_back)),
        (FailureKind::Abandoned, vec![1, 2])
    );
    assert_eq!(attempt.on_abandoned(ms(3)), None);
}

// Shows: T5.4.
#[test]
fn s28_an_owner_whose_request_may_be_anywhere_is_tombstoned() {
    let mut attempt = attempt(5);
    let before = [(0, GRANTED), (1, NodeOutcome::Unknown), (2, HELD)];
    let failure = failure(decided(&mut attempt, &before, (3, HELD, 2)));
    let tombstone = |node, tombstone| GiveBack { node, tombstone };
    // Node 4 has its request on the connection that the release takes too.
    assert_eq!(
        failure.give_back,
        [tombstone(0, false), tombstone(1, true), tombstone(4, false)]
    );
}

// Shows: L1.1.
#[test]
fn s15_what_a_quarantined_node_grants_is_no_vote() {
    let ready_in = Some(Duration::from_secs(9));
    let quarantined = NodeOutcome::NotAVote { ready_in };
    let before = [(0, GRANTED), (1, quarantined)];
    let failure = failure(decided(&mut attempt(3), &before, (2, quarantined, 2)));
    assert_eq!(failure.kind, FailureKind::Quarantined);
    assert_eq!(failure.quorum_ready_in, ready_in);
    assert_eq!(nodes(&failure.give_back), [0, 1, 2]);
}
