//! Waits for an answer, for a key, and for a client to come to rest.

use redlock_sim::{Checker, Event, Violation};

use crate::checker::{
    ANSWERED, NOTHING, RULES, TRIES, acquired, ms, names, released, stood_still, waits,
};

#[test]
fn a_waiter_that_is_not_answered_is_found_unless_its_client_stood_still() {
    assert_eq!(names(&[(1, waits(20)), (21, ANSWERED)]), ["Unanswered"]);
    assert_eq!(names(&[(1, waits(20))]), ["Unanswered"]);
    assert_eq!(names(&[(1, waits(20)), (20, ANSWERED)]), NOTHING);
    let paused = [(1, waits(20)), (15, stood_still(1, 10)), (30, ANSWERED)];
    assert_eq!(names(&paused), NOTHING);
    let another = [(1, waits(20)), (15, stood_still(2, 10)), (30, ANSWERED)];
    assert_eq!(names(&another), ["Unanswered"]);
}

#[test]
fn attempts_without_a_pause_are_found() {
    let history = |second, third| {
        [
            (1, waits(90)),
            (1, TRIES),
            (second, TRIES),
            (third, TRIES),
            (50, ANSWERED),
        ]
    };
    assert_eq!(names(&history(5, 9)), ["Spins"]);
    assert_eq!(names(&history(6, 10)), NOTHING);
    assert_eq!(names(&history(5, 10)), NOTHING);
}

#[test]
fn attempts_after_the_wait_are_found_unless_they_are_the_first() {
    let waits = Event::Waits {
        waiter: 7,
        client: 1,
        until: ms(20),
        due: ms(500),
    };
    let history = |attempts: &[u64]| {
        let tries = attempts.iter().map(|at| (*at, TRIES));
        let begins = [(1, waits.clone())].into_iter();
        let all = begins.chain(tries).chain([(400, ANSWERED)]);
        names(&all.collect::<Vec<_>>())
    };
    assert_eq!(history(&[1, 71]), ["LateAttempt"]);
    assert_eq!(history(&[1, 70]), NOTHING);
    assert_eq!(history(&[71]), NOTHING);
}

#[test]
fn a_key_that_nobody_acquires_is_found() {
    let free = Event::Free {
        key: 0,
        due: ms(60),
    };
    assert_eq!(names(&[(1, free.clone())]), ["Starved"]);
    let in_time = [
        (1, free.clone()),
        (60, acquired(1, 1, 90)),
        (61, released(1)),
    ];
    assert_eq!(names(&in_time), NOTHING);
    let late = [
        (1, free.clone()),
        (61, acquired(1, 1, 90)),
        (61, released(1)),
    ];
    assert_eq!(names(&late), ["Starved"]);
    // A claimant that a majority granted the key, and that gave it back, was not starved.
    let given_back = Event::CutShort {
        job: 0,
        tick: 10,
        token: 7,
        outcome: None,
        settled: 0,
    };
    let commits = Event::Commits {
        job: 0,
        tick: 10,
        token: 7,
    };
    let granted = [(1, commits), (2, free), (60, given_back)];
    assert!(!names(&granted).contains(&"Starved"));
}

#[test]
fn a_client_that_does_not_come_to_rest_is_found() {
    let rests = |requests, is_clean| Event::Rests {
        client: 1,
        requests,
        is_clean,
    };
    assert_eq!(names(&[(1, rests(1, true))]), ["Leak"]);
    assert_eq!(names(&[(1, rests(0, false))]), ["Leak"]);
    assert_eq!(names(&[(1, rests(0, true))]), NOTHING);
}

#[test]
fn what_others_find_is_kept() {
    let mut checker = Checker::new(RULES);
    checker.report(ms(3), Violation::Panics);
    assert_eq!(checker.finish(ms(4)), [(ms(3), Violation::Panics)]);
}
