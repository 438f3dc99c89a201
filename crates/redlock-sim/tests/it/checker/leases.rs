//! Leases: the holders of a key, their times, and what a holder is told.

use std::time::Duration;

use redlock_sim::Event;

use crate::checker::{NOTHING, acquired, ended, extended, ms, names, released, stood_still};

#[test]
fn one_holder_after_the_other_is_how_it_should_be() {
    let history = [
        (1, acquired(1, 10, 50)),
        (20, extended(1, 70)),
        (30, released(1)),
        (31, acquired(2, 11, 80)),
        (80, ended(2)),
        (81, acquired(3, 12, 150)),
        (90, released(2)),
        (91, released(3)),
    ];
    assert_eq!(names(&history), NOTHING);
}

// Shows: J1.
#[test]
fn two_holders_at_once_are_found() {
    let history = [
        (1, acquired(1, 10, 50)),
        (49, acquired(2, 11, 90)),
        (50, ended(1)),
    ];
    assert_eq!(names(&history), ["Overlap"]);
    let history = [
        (1, acquired(1, 10, 50)),
        (50, acquired(2, 11, 90)),
        (50, ended(1)),
    ];
    assert_eq!(names(&history), NOTHING);
}

#[test]
fn two_keys_have_two_holders() {
    let mut other = acquired(2, 3, 90);
    let Event::Acquired { key, .. } = &mut other else {
        panic!("it is what was acquired");
    };
    *key = 1;
    assert_eq!(names(&[(1, acquired(1, 10, 50)), (2, other)]), NOTHING);
}

#[test]
fn an_extension_on_top_of_another_holder_is_found() {
    let history = [
        (1, acquired(1, 10, 50)),
        (50, acquired(2, 11, 90)),
        (51, extended(1, 100)),
    ];
    assert_eq!(names(&history), ["Revived", "Overlap", "StaleExtension"]);
}

#[test]
fn an_extension_after_a_newer_lease_has_come_and_gone_is_found() {
    let history = [
        (1, acquired(1, 10, 50)),
        (50, acquired(2, 11, 90)),
        (52, released(2)),
        (53, extended(1, 100)),
        (53, released(1)),
    ];
    assert_eq!(names(&history), ["Revived", "StaleExtension"]);
}

#[test]
fn an_extension_of_a_lease_that_has_ended_is_found() {
    let history = |at| {
        [
            (1, acquired(1, 10, 50)),
            (at, extended(1, 100)),
            (at, released(1)),
        ]
    };
    assert_eq!(names(&history(50)), ["Revived"]);
    assert_eq!(names(&history(49)), NOTHING);
    let lost = [
        (1, acquired(1, 10, 50)),
        (9, ended(1)),
        (10, extended(1, 60)),
        (11, released(1)),
    ];
    assert_eq!(names(&lost), ["Revived"]);
}

#[test]
fn a_lease_that_no_majority_keeps_for_so_long_is_found() {
    let promised = |until, promised| Event::Extended {
        lease: 1,
        until: ms(until),
        promised: Some(ms(promised)),
    };
    let history = |until| {
        [
            (1, acquired(1, 10, 50)),
            (20, promised(until, 60)),
            (21, released(1)),
        ]
    };
    assert_eq!(names(&history(61)), ["Unbacked"]);
    assert_eq!(names(&history(60)), NOTHING);
}

#[test]
fn a_lease_that_had_ended_when_it_was_handed_out_is_found() {
    assert_eq!(
        names(&[(50, acquired(1, 10, 50)), (50, ended(1))]),
        ["Stillborn"]
    );
}

#[test]
fn a_holder_who_is_told_too_late_is_found_unless_it_stood_still() {
    let late = [(1, acquired(1, 10, 50)), (52, ended(1))];
    assert_eq!(names(&late), ["LateLoss"]);
    let late = [(1, acquired(1, 10, 50)), (52, released(1))];
    assert_eq!(names(&late), ["LateLoss"]);
    let in_time = [(1, acquired(1, 10, 50)), (51, ended(1)), (90, released(1))];
    assert_eq!(names(&in_time), NOTHING);
    let paused = [
        (1, acquired(1, 10, 50)),
        (60, stood_still(1, 20)),
        (60, ended(1)),
    ];
    assert_eq!(names(&paused), NOTHING);
    let before = [
        (1, stood_still(1, 20)),
        (1, acquired(1, 10, 50)),
        (60, ended(1)),
    ];
    assert_eq!(names(&before), ["LateLoss"]);
}

#[test]
fn a_key_that_does_not_rest_is_found() {
    let mut rests = acquired(1, 10, 50);
    let Event::Acquired { rest, .. } = &mut rests else {
        panic!("it is what was acquired");
    };
    *rest = Duration::from_millis(20);
    let history = |ends, next| [(1, rests.clone()), (40, ends), (next, acquired(2, 11, 99))];
    assert_eq!(names(&history(ended(1), 69)), ["NoRest"]);
    assert_eq!(names(&history(ended(1), 70)), NOTHING);
    assert_eq!(names(&history(released(1), 41)), NOTHING);
}
