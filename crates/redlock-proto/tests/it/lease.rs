//! A lease, from its grant to its end.

use std::{num::NonZeroUsize, time::Duration};

use redlock_proto::{
    Attempt, AttemptVerdict, ClockReading, ExtensionVerdict, Instant, LeaseAction, LeaseState,
    Loss, NodeOutcome, NodeTime, Quorum, RunId, Timing,
};

fn ms(ms: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(ms))
}

const GRANTED: NodeOutcome = NodeOutcome::Granted { counter: 1 };

fn quorum() -> Quorum {
    Quorum::of(NonZeroUsize::new(3).unwrap())
}

fn lease(ttl: u64, renew: bool) -> LeaseState {
    lease_for(ttl, renew, None)
}

fn lease_for(ttl: u64, renew: bool, max_hold: Option<Duration>) -> LeaseState {
    let min_validity = Duration::from_millis(1);
    let timing = Timing::new(Duration::from_millis(ttl), 0.01, min_validity).unwrap();
    won(
        Attempt::start(quorum(), timing, ms(0)),
        ms(0),
        renew,
        max_hold,
    )
}

/// Returns the lease of an attempt that nodes 0 and 1 grant at `now`.
fn won(mut attempt: Attempt, now: Instant, renew: bool, max_hold: Option<Duration>) -> LeaseState {
    attempt.on_outcome(0, GRANTED, now);
    let verdict = attempt.on_outcome(1, GRANTED, now);
    let Some(AttemptVerdict::Granted(grant)) = verdict else {
        panic!("{verdict:?}")
    };
    LeaseState::new(attempt.timing(), &grant, attempt.votes(), renew, max_hold)
}

/// Returns the nodes that are told, and whether the owner is tombstoned there.
fn released(lease: &mut LeaseState) -> Vec<(usize, bool)> {
    let left = lease.release();
    left.nodes()
        .map(|back| (back.node, back.tombstone))
        .collect()
}

/// rslock computed `ttl - 500` in unsigned numbers and never renewed a short lock.
#[test]
fn s07_renewal_is_due_before_the_deadline_for_every_ttl() {
    for ttl in 4..=2_000 {
        let mut lease = lease(ttl, true);
        let due = lease.next_timer().unwrap();
        assert!(
            due < lease.deadline(),
            "ttl {ttl}: due {due}, deadline {}",
            lease.deadline()
        );
        assert_eq!(lease.on_timer(due), Some(LeaseAction::Extend), "ttl {ttl}");
    }
}

/// So they share calls; each is a little earlier than it must be, and never later.
#[test]
fn leases_of_one_ttl_are_renewed_at_the_same_moments() {
    let timing = lease(30_000, true).timing();
    let third = Duration::from_secs(10);
    let due = |micros| {
        let start = Instant::from_origin(Duration::from_micros(micros));
        let attempt = Attempt::start(quorum(), timing, start);
        let due = won(attempt, start, true, None).next_timer().unwrap();
        assert!(due <= start + third);
        assert!(due + Duration::from_millis(15) > start + third);
        due
    };
    let mut moments: Vec<Instant> = (0..10_000).map(|number| due(number * 100)).collect();
    assert!(moments.is_sorted());
    moments.dedup();
    assert!(moments.len() < 80, "{} in a second", moments.len());
}

// Shows: T2.1.
#[test]
fn s06_the_loss_is_told_at_the_deadline_though_a_round_is_under_way() {
    let mut lease = lease(1_000, true);
    assert_eq!(lease.on_timer(ms(334)), Some(LeaseAction::Extend));
    assert_eq!(lease.on_timer(ms(645)), Some(LeaseAction::Wait));
    assert_eq!(lease.on_timer(ms(645)), Some(LeaseAction::Warn));
    assert_eq!(lease.next_timer(), Some(ms(978)));
    assert_eq!(lease.on_timer(ms(977)), None);
    assert_eq!(
        lease.on_timer(ms(978)),
        Some(LeaseAction::Lost(Loss::Expired))
    );
    assert_eq!(lease.on_timer(ms(979)), None);
}

#[test]
fn an_operator_is_warned_once_with_a_third_left_or_more_unless_a_renewal_succeeds() {
    let mut lease = lease(1_000, true);
    assert_eq!(lease.on_timer(ms(334)), Some(LeaseAction::Extend));
    assert_eq!(lease.on_timer(ms(500)), Some(LeaseAction::Wait));
    let danger = lease.next_timer().unwrap();
    let third = Duration::from_secs(1) / 3;
    assert_eq!(danger, lease.deadline() - third - third / 10);
    assert_eq!(lease.on_timer(danger), Some(LeaseAction::Warn));
    assert_eq!(lease.next_timer(), Some(lease.deadline()));
    assert_eq!(lease.on_timer(danger), None);
    // A renewal that succeeds late ends the danger, and the next one begins another.
    let deadline = ms(1_600);
    let extended = ExtensionVerdict::Extended { deadline };
    assert_eq!(lease.on_extension(ms(650), extended, ms(700)), None);
    assert_eq!(lease.deadline(), deadline);
    assert_eq!(lease.on_timer(ms(1_000)), Some(LeaseAction::Extend));
    assert_eq!(lease.on_timer(ms(1_225)), Some(LeaseAction::Wait));
    assert_eq!(lease.on_timer(ms(1_225)), None);
    assert_eq!(lease.on_timer(ms(1_240)), Some(LeaseAction::Warn));
}

// Shows: T6.10.
#[test]
fn a_client_is_behind_while_a_renewal_takes_longer_than_a_tenth_of_the_ttl_unless_nodes_refuse_it()
{
    let mut lease = lease(1_000, true);
    assert_eq!(lease.on_timer(ms(334)), Some(LeaseAction::Extend));
    assert_eq!(lease.on_timer(ms(432)), None);
    assert_eq!(lease.on_timer(ms(434)), Some(LeaseAction::Wait));
    assert!(lease.is_behind());
    // It is so for as long as no round succeeds.
    let failed = ExtensionVerdict::Failed;
    assert_eq!(lease.on_extension(ms(334), failed, ms(440)), None);
    assert!(lease.is_behind());
    let deadline = ms(1_600);
    let extended = ExtensionVerdict::Extended { deadline };
    assert_eq!(lease.on_extension(ms(450), extended, ms(460)), None);
    assert!(!lease.is_behind());

    assert_eq!(lease.on_timer(ms(800)), Some(LeaseAction::Extend));
    assert_eq!(lease.on_timer(ms(900)), Some(LeaseAction::Wait));
    lease.on_refusal();
    assert!(!lease.is_behind());
}

#[test]
fn nobody_is_warned_of_a_lease_that_nothing_renews() {
    let mut parked = lease(1_000, true);
    parked.park();
    for lease in [&mut lease(1_000, false), &mut parked] {
        assert_eq!(lease.next_timer(), Some(lease.deadline()));
        let before = lease.deadline() - Duration::from_millis(1);
        assert_eq!(lease.on_timer(before), None);
    }
}

// Shows: T2.4.
#[test]
fn s05_a_failed_extension_changes_nothing_and_is_tried_again() {
    let mut lease = lease(1_000, true);
    assert_eq!(lease.on_timer(ms(334)), Some(LeaseAction::Extend));
    let failed = ExtensionVerdict::Failed;
    assert_eq!(lease.on_extension(ms(334), failed, ms(400)), None);
    assert_eq!(lease.deadline(), ms(978));
    assert_eq!(lease.on_timer(ms(450)), Some(LeaseAction::Extend));
    let extended = ExtensionVerdict::Extended {
        deadline: ms(450 + 978),
    };
    assert_eq!(lease.on_extension(ms(450), extended, ms(451)), None);
    assert_eq!(lease.deadline(), ms(450 + 978));
    assert_eq!(released(&mut lease), [(0, false), (1, false), (2, false)]);
}

#[test]
fn s08_nothing_is_extended_after_the_release() {
    let mut lease = lease(1_000, true);
    assert_eq!(released(&mut lease), [(0, false), (1, false), (2, false)]);
    assert_eq!(lease.on_timer(ms(500)), None);
    assert!(!lease.extend());
    assert_eq!(lease.expire(), None);
    let extended = ExtensionVerdict::Extended {
        deadline: ms(2_000),
    };
    assert_eq!(lease.on_extension(ms(334), extended, ms(340)), None);
    assert_eq!(lease.deadline(), ms(978));
    assert_eq!(released(&mut lease), []);
}

// Shows: A3.
#[test]
fn a_lease_that_a_majority_has_lost_is_lost_at_once() {
    let mut lease = lease(1_000, true);
    assert_eq!(lease.on_timer(ms(400)), Some(LeaseAction::Extend));
    (0..3).for_each(|node| lease.on_extension_outcome(node, NodeOutcome::Missing));
    let action = lease.on_extension(ms(400), ExtensionVerdict::Revoked, ms(401));
    assert_eq!(action, Some(LeaseAction::Lost(Loss::Revoked)));
    assert_eq!(released(&mut lease), []);
}

// Shows: T5.1.
#[test]
fn only_nodes_that_may_hold_the_key_are_released() {
    let mut lease = lease(1_000, false);
    lease.on_late_outcome(2, NodeOutcome::NotExecuted);
    lease.on_late_outcome(1, NodeOutcome::Unknown);
    assert_eq!(released(&mut lease), [(0, false), (1, true)]);
}

// Shows: T5.4.
#[test]
fn s28_a_refused_extension_does_not_forget_an_acquire_that_may_still_arrive() {
    let mut lease = lease(1_000, true);
    lease.on_late_outcome(2, NodeOutcome::Unknown);
    assert_eq!(lease.on_timer(ms(400)), Some(LeaseAction::Extend));
    lease.on_extension_outcome(2, NodeOutcome::Missing);
    lease.on_extension_outcome(1, NodeOutcome::Missing);
    let failed = ExtensionVerdict::Failed;
    assert_eq!(lease.on_extension(ms(400), failed, ms(401)), None);
    assert_eq!(released(&mut lease), [(0, false), (2, true)]);
}

// Shows: T5.4.
#[test]
fn s28_a_confirmed_extension_does_not_forget_an_acquire_that_may_still_arrive() {
    let mut lease = lease(1_000, true);
    lease.on_late_outcome(2, NodeOutcome::Unknown);
    assert_eq!(lease.on_timer(ms(400)), Some(LeaseAction::Extend));
    // Its address may lead to the server of node 0 by now, which has the key.
    for node in 0..3 {
        lease.on_extension_outcome(node, NodeOutcome::Granted { counter: 7 });
    }
    assert_eq!(released(&mut lease), [(0, false), (1, false), (2, true)]);
}

// Shows: T1.9.
#[test]
fn a_node_is_healed_only_after_a_majority_has_confirmed() {
    let mut lease = lease(1_000, true);
    let extended = ExtensionVerdict::Extended {
        deadline: ms(1_500),
    };
    assert!(!lease.heals(1, extended, NodeOutcome::Missing), "it has it");
    lease.on_extension_outcome(0, NodeOutcome::Missing);
    assert!(lease.heals(0, extended, NodeOutcome::Missing));
    assert!(!lease.heals(0, extended, NodeOutcome::Refused { remaining: None }));
    assert!(!lease.heals(0, ExtensionVerdict::Failed, NodeOutcome::Missing));
    lease.release();
    assert!(!lease.heals(0, extended, NodeOutcome::Missing));
}

/// Its acquire may have been lost, and the lease may last for long.
// Shows: T5.4.
#[test]
fn s28_a_node_at_which_an_acquire_may_still_arrive_is_healed_and_tombstones_the_owner() {
    let mut lease = lease(1_000, true);
    let extended = ExtensionVerdict::Extended {
        deadline: ms(1_500),
    };
    lease.on_late_outcome(1, NodeOutcome::Unknown);
    lease.on_extension_outcome(1, NodeOutcome::Missing);
    assert!(lease.heals(1, extended, NodeOutcome::Missing));
    lease.on_healing(1);
    lease.on_late_outcome(1, GRANTED);
    assert_eq!(released(&mut lease), [(0, false), (1, true), (2, false)]);
}

/// A client that was paused hears of several rounds at once, all of them from before the healing.
#[test]
fn a_node_that_is_being_healed_is_released_whatever_it_said_before() {
    let mut lease = lease(1_000, true);
    let extended = ExtensionVerdict::Extended {
        deadline: ms(1_500),
    };
    lease.on_late_outcome(2, NodeOutcome::NotExecuted);
    assert!(lease.heals(2, extended, NodeOutcome::Missing));
    lease.on_healing(2);
    lease.on_extension_outcome(2, NodeOutcome::Missing);
    assert!(
        !lease.heals(2, extended, NodeOutcome::Missing),
        "it is under way"
    );
    assert_eq!(released(&mut lease), [(0, false), (1, false), (2, false)]);
}

#[test]
fn a_node_that_was_healed_is_believed_again() {
    let mut lease = lease(1_000, true);
    lease.on_late_outcome(2, NodeOutcome::NotExecuted);
    lease.on_healing(2);
    lease.on_late_outcome(2, GRANTED);
    lease.on_extension_outcome(2, NodeOutcome::Missing);
    assert_eq!(released(&mut lease), [(0, false), (1, false)]);
}

/// A node that lost the key can come back with it, from old data, and say so when the lease is lost already.
#[test]
fn a_node_that_has_the_key_after_the_loss_is_released() {
    let mut lease = lease(1_000, true);
    lease.on_extension_outcome(2, NodeOutcome::Missing);
    assert!(lease.on_timer(ms(978)).is_some());
    assert!(!lease.is_live());
    lease.on_extension_outcome(2, GRANTED);
    assert_eq!(released(&mut lease), [(0, false), (1, false), (2, false)]);
    lease.on_extension_outcome(2, GRANTED);
    assert_eq!(released(&mut lease), [], "it was released");
}

// Shows: T2.6.
#[test]
fn a_lease_ends_when_it_was_held_for_as_long_as_it_may_be() {
    let mut lease = lease_for(1_000, true, Some(Duration::from_millis(1_200)));
    assert_eq!(lease.deadline(), ms(978));
    assert_eq!(lease.on_timer(ms(334)), Some(LeaseAction::Extend));
    let deadline = ms(334 + 978);
    let extended = ExtensionVerdict::Extended { deadline };
    let action = lease.on_extension(ms(334), extended, ms(335));
    assert_eq!(action, None);
    assert_eq!(lease.deadline(), ms(1_200));
    let lost = Some(LeaseAction::Lost(Loss::MaxHold));
    assert_eq!(lease.on_timer(ms(1_200)), lost);
}

/// The other nodes are about to give it their key, too.
// Shows: T6.3.
#[test]
fn nodes_that_have_not_given_their_key_yet_are_asked_for_it_100_ms_after_the_others_gave_it() {
    let timing = Timing::new(Duration::from_secs(30), 0.01, Duration::from_millis(1)).unwrap();
    let mut attempt = Attempt::start(quorum(), timing, ms(0)).in_line(Duration::from_secs(7));
    let in_line = NodeOutcome::InLine { remaining: None };
    for node in 0..3 {
        assert_eq!(attempt.on_outcome(node, in_line, ms(2)), None);
    }
    let mut gift = |node: usize, now| {
        let reading = ClockReading {
            time: NodeTime::from_micros(0),
            sent: ms(0),
            received: now,
        };
        let run = RunId::from(&*format!("run of {node}"));
        attempt.on_gift(node, 1, (run, reading), now)
    };
    assert_eq!(gift(0, ms(300)), None);
    let Some(AttemptVerdict::Granted(grant)) = gift(1, ms(301)) else {
        panic!("it has a majority")
    };
    let lease = LeaseState::new(timing, &grant, attempt.votes(), true, None);
    assert_eq!(lease.next_timer(), Some(ms(401)));
}

/// A hand-over does not put off that the other nodes get the key.
// Shows: T6.3.
#[test]
fn a_lease_of_a_bare_majority_is_given_to_the_others_once_whoever_holds_it() {
    let timing = Timing::new(Duration::from_secs(3), 0.01, Duration::from_millis(1)).unwrap();
    let attempt = Attempt::start(quorum(), timing, ms(0)).asking(0..2);
    let mut lease = won(attempt, ms(0), true, None);
    assert_eq!(lease.next_timer(), Some(ms(100)));
    lease.park();
    assert_eq!(lease.resume(ms(50)), None);
    assert_eq!(lease.next_timer(), Some(ms(100)));
    assert_eq!(lease.on_timer(ms(100)), Some(LeaseAction::Spread));
    assert!(lease.lacks(2));
    lease.on_asked(2);
    let lease_of_all = self::lease(3_000, true);
    assert_eq!(lease.next_timer(), lease_of_all.next_timer());
    lease.park();
    assert_eq!(lease.resume(ms(160)), None);
    assert_eq!(lease.next_timer(), Some(ms(1_000)));
    assert_eq!(released(&mut lease), [(0, false), (1, false), (2, false)]);
}
