//! Whose clocks agree.

use std::{num::NonZeroUsize, time::Duration};

use redlock_proto::{ClockReading, Clocks, Instant, NodeTime, Quorum, RunId};

const HOUR: i64 = 3_600_000;

/// Returns clocks that are ahead by these numbers of milliseconds, read over a connection that takes 2 ms.
fn clocks(ahead: &[i64]) -> Clocks {
    let mut clocks = Clocks::new(Quorum::of(NonZeroUsize::new(ahead.len()).unwrap()));
    for (node, ahead) in ahead.iter().enumerate() {
        let time = u64::try_from(10 * HOUR + 1 + ahead).unwrap() * 1_000;
        note(&mut clocks, node, time, (0, 2));
    }
    clocks
}

fn note(clocks: &mut Clocks, node: usize, micros: u64, (sent, received): (u64, u64)) {
    let reading = ClockReading {
        time: NodeTime::from_micros(micros),
        sent: at(sent),
        received: at(received),
    };
    clocks.note(node, &RunId::from("run"), reading);
}

fn at(ms: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(ms))
}

fn agreeing(ahead: &[i64]) -> Vec<bool> {
    let clocks = clocks(ahead);
    (0..ahead.len())
        .map(|node| clocks.agrees(node, at(5)))
        .collect()
}

// Shows: L2.2.
#[test]
fn s14_a_clock_that_is_an_hour_off_is_left_out() {
    assert_eq!(
        agreeing(&[0, HOUR, 3, -4, 8]),
        [true, false, true, true, true]
    );
    assert_eq!(agreeing(&[-HOUR, 0, 500]), [false, true, true]);
    assert_eq!(agreeing(&[0, 1_200, 500]), [true, false, true]);
}

// Shows: L2.3.
#[test]
fn without_a_majority_that_agrees_nobody_does() {
    assert_eq!(agreeing(&[0, HOUR, 2 * HOUR]), [false; 3]);
    assert_eq!(agreeing(&[0, HOUR]), [false; 2]);
    assert_eq!(agreeing(&[HOUR]), [true]);
}

#[test]
fn the_time_is_that_of_the_clock_in_the_middle_of_those_that_agree() {
    let time = |ahead: &[i64]| {
        let clocks = clocks(ahead);
        let time = clocks.middle(at(5))?;
        Some(i64::try_from(time.as_millis()).unwrap() - 10 * HOUR - 5)
    };
    assert_eq!(time(&[0, 300, -20]), Some(0));
    assert_eq!(time(&[7, HOUR, 9, -HOUR, 8]), Some(8));
    assert_eq!(time(&[0, HOUR, 2 * HOUR]), None);
    assert_eq!(
        Clocks::new(Quorum::of(NonZeroUsize::MIN)).middle(at(5)),
        None
    );
    // It goes on with ours.
    let later = clocks(&[0; 3]).middle(at(1_000)).unwrap();
    assert_eq!(later.as_millis(), 36_001_000);
}

// Shows: L2.2.
#[test]
fn s14_readings_that_are_old_say_nothing() {
    let mut clocks = clocks(&[0, 0, 0]);
    let limit = 2 + 10_000;
    assert!(clocks.agrees(0, at(limit)) && clocks.are_comparable(at(limit)));
    assert!(!clocks.agrees(0, at(limit + 1)) && !clocks.are_comparable(at(limit + 1)));
    // A client that stood still must not take a new reading for right because of old ones.
    let hour = 3_600_000_000;
    note(&mut clocks, 0, 11 * hour, (600_000, 600_000));
    assert!(!clocks.agrees(0, at(600_000)));
}

#[test]
fn what_was_forgotten_does_not_agree() {
    let mut clocks = clocks(&[0, 0, 0]);
    clocks.forget(1);
    assert!(clocks.agrees(0, at(5)) && !clocks.agrees(1, at(5)));
    assert!(clocks.are_comparable(at(5)));
    clocks.forget(2);
    assert!(!clocks.are_comparable(at(5)));
    assert!(!clocks.agrees(0, at(5)), "one of three is no majority");
}

// Shows: L2.4.
#[test]
fn a_slow_answer_is_given_the_benefit_of_the_doubt() {
    let mut clocks = clocks(&[0, 0, 0]);
    // It was on its way for five seconds, in either direction.
    note(&mut clocks, 2, 36_004_000_000, (0, 5_000));
    assert!(clocks.agrees(2, at(5_001)));
}
