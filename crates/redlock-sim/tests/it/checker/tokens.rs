//! Fencing tokens, and where their order starts over.

use std::time::Duration;

use redlock_sim::{Event, Rules};

use crate::checker::{NOTHING, RULES, acquired, judged, ms, names, opened, released};

// Shows: J1.
#[test]
fn tokens_that_do_not_grow_are_found() {
    for token in [9, 10] {
        let history = [
            (1, acquired(1, 10, 50)),
            (2, released(1)),
            (3, acquired(2, token, 60)),
            (4, released(2)),
        ];
        assert_eq!(names(&history), ["TokenOrder"], "{token}");
    }
}

#[test]
fn tokens_may_shrink_where_so_many_nodes_lost_counters_that_the_others_do_not_know_them() {
    let far = Rules {
        skew: Duration::from_millis(101),
        ..RULES
    };
    let history = |lost: &[usize], told: &[usize]| {
        let mut history = vec![(1, acquired(1, 10, 50)), (2, released(1))];
        history.extend(lost.iter().map(|node| (2, Event::Forgot { node: *node })));
        history.extend(told.iter().map(|node| (200, opened(*node))));
        history.extend([(203, acquired(2, 9, 260)), (204, released(2))]);
        history
    };
    assert_eq!(judged(far, &history(&[0], &[0])), ["TokenOrder"]);
    assert_eq!(judged(far, &history(&[0, 0], &[0])), ["TokenOrder"]);
    assert_eq!(judged(far, &history(&[0, 1], &[0])), NOTHING);
    assert_eq!(
        names(&history(&[0, 1], &[0])),
        ["TokenOrder"],
        "clocks agree"
    );
    let lost = judged(far, &history(&[0, 1], &[]));
    assert_eq!(lost, ["TokenOrder"], "none of them has voted since");
    let mut doubled = history(&[0], &[0]);
    doubled.iter_mut().for_each(|(_, event)| {
        if let Event::Opened { duplicates, .. } = event {
            *duplicates = 1;
        }
    });
    assert_eq!(judged(far, &doubled), NOTHING, "one is another's duplicate");
}

#[test]
fn where_clocks_step_a_token_is_compared_with_those_before_its_attempt() {
    let rules = Rules {
        clocks_step: true,
        ..RULES
    };
    let history = |began| {
        let Event::Acquired {
            client,
            until,
            rest,
            promised,
            ..
        } = acquired(2, 9, 90)
        else {
            panic!("it is what was acquired");
        };
        let second = Event::Acquired {
            lease: 2,
            key: 0,
            is_shared: false,
            tokens: (9, 9),
            started: ms(began),
            client,
            until,
            rest,
            promised,
        };
        [
            (5, acquired(1, 10, 50)),
            (6, released(1)),
            (7, second),
            (8, released(2)),
        ]
    };
    assert_eq!(judged(rules, &history(5)), NOTHING);
    assert_eq!(judged(rules, &history(6)), ["TokenOrder"]);
}
