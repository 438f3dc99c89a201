//! Leases that share a key: which of them may overlap, and the order of their tokens.

use std::time::Duration;

use redlock_sim::{Event, Rules};

use crate::checker::{NOTHING, RULES, acquired, ended, extended, judged, ms, names, released};

/// A lease that others may share, of an attempt that was started at a moment.
fn shared(lease: u64, token: u64, (began, until): (u64, u64)) -> Event {
    let mut event = acquired(lease, token, until);
    let Event::Acquired {
        is_shared, started, ..
    } = &mut event
    else {
        panic!("it is what was acquired");
    };
    *is_shared = true;
    *started = ms(began);
    event
}

#[test]
fn many_share_a_key_and_whoever_has_it_alone_meets_nobody() {
    let readers = [
        (1, shared(1, 10, (0, 50))),
        (2, shared(2, 11, (2, 50))),
        (3, extended(1, 90)),
        (4, released(2)),
    ];
    assert_eq!(names(&readers), NOTHING);
    let mut with_writer = readers.to_vec();
    with_writer.push((5, acquired(3, 12, 60)));
    assert_eq!(names(&with_writer), ["Overlap"]);
    let reads_what_is_written = [
        (1, acquired(1, 10, 50)),
        (49, shared(2, 11, (49, 90))),
        (50, ended(1)),
    ];
    assert_eq!(names(&reads_what_is_written), ["Overlap"]);
}

#[test]
fn whoever_lets_others_share_it_meets_them_from_then_on() {
    let history = |at| {
        [
            (1, acquired(1, 10, 50)),
            (20, Event::Downgraded { lease: 1 }),
            (at, shared(2, 11, (at, 90))),
            (at + 1, extended(1, 90)),
        ]
    };
    assert_eq!(names(&history(20)), NOTHING);
    let alone = [
        (1, acquired(1, 10, 50)),
        (20, Event::Downgraded { lease: 1 }),
        (21, acquired(2, 11, 90)),
    ];
    assert_eq!(names(&alone), ["Overlap"]);
}

#[test]
fn a_shared_lease_is_not_prolonged_after_somebody_had_the_key_alone() {
    let history = |later: Event| {
        [
            (1, shared(1, 10, (0, 50))),
            (2, ended(1)),
            (60, later),
            (61, released(2)),
            (62, extended(1, 100)),
            (63, released(1)),
        ]
    };
    let alone = history(acquired(2, 11, 90));
    assert_eq!(names(&alone), ["Revived", "StaleExtension"]);
    let together = history(shared(2, 11, (60, 90)));
    assert_eq!(names(&together), ["Revived"]);
}

#[test]
fn a_key_rests_from_those_who_shared_it_for_those_who_want_it_alone() {
    let mut rests = shared(1, 10, (0, 50));
    let Event::Acquired { rest, .. } = &mut rests else {
        panic!("it is what was acquired");
    };
    *rest = Duration::from_millis(20);
    let history = |later: Event| [(1, rests.clone()), (50, ended(1)), (60, later)];
    assert_eq!(names(&history(acquired(2, 11, 90))), ["NoRest"]);
    assert_eq!(names(&history(shared(2, 11, (60, 90)))), NOTHING);
}

/// The tokens of two shared leases must be in order only if one was won before the other's attempt began.
// Shows: R4.5.
#[test]
fn tokens_of_readers_grow_from_one_start_to_the_next_and_around_a_writers() {
    let second = |began, token| {
        [
            (5, shared(1, 10, (0, 50))),
            (7, shared(2, token, (began, 50))),
        ]
    };
    assert_eq!(names(&second(6, 11)), NOTHING);
    assert_eq!(names(&second(6, 10)), ["TokenOrder"]);
    assert_eq!(names(&second(5, 9)), NOTHING);
    let after_a_writer = |token| {
        [
            (5, acquired(1, 10, 50)),
            (6, released(1)),
            (7, shared(2, token, (0, 50))),
        ]
    };
    assert_eq!(names(&after_a_writer(11)), NOTHING);
    assert_eq!(names(&after_a_writer(10)), ["TokenOrder"]);
    let writer = |token| {
        [
            (5, shared(1, 10, (0, 50))),
            (6, released(1)),
            (7, acquired(2, token, 50)),
        ]
    };
    assert_eq!(names(&writer(11)), NOTHING);
    assert_eq!(names(&writer(10)), ["TokenOrder"]);
}

/// Where keys are shared, it is not enough that some share what is free.
#[test]
fn whoever_wants_a_key_alone_must_not_wait_for_good() {
    let rules = Rules {
        shares: true,
        ..RULES
    };
    let history = |later: Event| {
        [
            (
                1,
                Event::Free {
                    key: 0,
                    due: ms(50),
                },
            ),
            (40, later),
        ]
    };
    assert_eq!(judged(rules, &history(acquired(1, 10, 60))), NOTHING);
    let shares = shared(1, 10, (30, 60));
    assert_eq!(judged(rules, &history(shares.clone())), ["Starved"]);
    assert_eq!(judged(RULES, &history(shares)), NOTHING);
}
