//! Each promise that is broken in a history is found, and the same history without the break is not
//! complained of.

use std::time::Duration;

use redlock_sim::{Checker, Event, Moment, Rules, Violation};

const RULES: Rules = Rules {
    max_ttl: Duration::from_millis(100),
    pause: Duration::from_millis(5),
    skew: Duration::from_millis(10),
    tolerated: 1,
    clocks_step: false,
};

fn ms(ms: u64) -> Moment {
    Moment::from_micros(1_000 * ms)
}

fn judged(rules: Rules, history: &[(u64, Event)]) -> Vec<&'static str> {
    let mut checker = Checker::new(rules);
    for (at, event) in history {
        checker.observe(ms(*at), event);
    }
    let found = checker.finish(ms(10_000));
    found
        .iter()
        .map(|(_, violation)| violation.name())
        .collect()
}

fn names(history: &[(u64, Event)]) -> Vec<&'static str> {
    judged(RULES, history)
}

/// The lease of a client that has the same number, on key 0.
fn acquired(lease: u64, token: u64, until: u64) -> Event {
    Event::Acquired {
        lease,
        client: usize::try_from(lease).unwrap_or_default(),
        key: 0,
        tokens: (token, token),
        started: Moment::START,
        until: ms(until),
        rest: Duration::ZERO,
        promised: None,
    }
}

fn extended(lease: u64, until: u64) -> Event {
    Event::Extended {
        lease,
        until: ms(until),
        promised: None,
    }
}

fn ended(lease: u64) -> Event {
    Event::Ended { lease }
}

fn released(lease: u64) -> Event {
    Event::Released { lease }
}

fn waits(due: u64) -> Event {
    Event::Waits {
        waiter: 7,
        client: 1,
        due: ms(due),
    }
}

const ANSWERED: Event = Event::Answered { waiter: 7 };
const TRIES: Event = Event::Tries { waiter: 7 };
const NOTHING: [&str; 0] = [];

fn stood_still(client: usize, length: u64) -> Event {
    Event::StoodStill {
        client,
        length: Duration::from_millis(length),
    }
}

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
    let Event::Acquired {
        client,
        tokens,
        started,
        until,
        rest,
        promised,
        ..
    } = acquired(2, 3, 90)
    else {
        panic!("it is what was acquired");
    };
    let other = Event::Acquired {
        lease: 2,
        key: 1,
        client,
        tokens,
        started,
        until,
        rest,
        promised,
    };
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
    let Event::Acquired {
        client,
        tokens,
        started,
        until,
        ..
    } = acquired(1, 10, 50)
    else {
        panic!("it is what was acquired");
    };
    let rests = Event::Acquired {
        lease: 1,
        client,
        key: 0,
        tokens,
        started,
        until,
        rest: Duration::from_millis(20),
        promised: None,
    };
    let history = |ends, next| [(1, rests.clone()), (40, ends), (next, acquired(2, 11, 99))];
    assert_eq!(names(&history(ended(1), 69)), ["NoRest"]);
    assert_eq!(names(&history(ended(1), 70)), NOTHING);
    assert_eq!(names(&history(released(1), 41)), NOTHING);
}

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
    let history = |lost: &[usize], opened: &[usize]| {
        let mut history = vec![(1, acquired(1, 10, 50)), (2, released(1))];
        history.extend(lost.iter().map(|node| (2, Event::Forgot { node: *node })));
        history.extend(
            opened
                .iter()
                .map(|node| (200, Event::Opened { node: *node })),
        );
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
fn a_node_that_votes_too_soon_is_found() {
    let (forgot, voted) = (Event::Forgot { node: 3 }, Event::Voted { node: 3 });
    let opened = Event::Opened { node: 3 };
    let history = |at| {
        [
            (10, forgot.clone()),
            (at, opened.clone()),
            (at, voted.clone()),
        ]
    };
    assert_eq!(names(&history(109)), ["EarlyVote"]);
    assert_eq!(names(&history(110)), NOTHING);
    let untold = [(10, forgot.clone()), (200, voted.clone())];
    assert_eq!(names(&untold), ["EarlyVote"]);
    let other = [(10, Event::Forgot { node: 2 }), (11, voted.clone())];
    assert_eq!(names(&other), NOTHING);
}

#[test]
fn what_nodes_must_not_do_is_found() {
    let healed = |confirmed| Event::Healed { node: 1, confirmed };
    assert_eq!(names(&[(1, healed(false))]), ["UnconfirmedHeal"]);
    assert_eq!(names(&[(1, healed(true))]), NOTHING);
    let found = Event::KeyFound {
        node: 1,
        key: 0,
        due: ms(5),
    };
    assert_eq!(names(&[(6, found.clone())]), ["KeyLeft"]);
    assert_eq!(names(&[(5, found)]), NOTHING);
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
    // A claimant whom a majority has granted the key, and who gave it back, was not kept from it.
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

const COMMITS: fn(u64) -> Event = |tick| Event::Commits {
    job: 0,
    tick,
    token: 7,
};

fn started(job: usize, tick: u64) -> Event {
    Event::Started {
        job,
        tick,
        token: 7,
        timely: true,
    }
}

fn recorded(outcome: &str) -> Event {
    Event::Recorded {
        job: 0,
        tick: 10,
        token: 7,
        outcome: outcome.into(),
    }
}

/// Somebody who asked at 5 ms is told of tick 10 and how its run ended, where a majority knew `known`.
fn status(known: u64, outcome: Option<&str>, is_free: bool) -> Event {
    Event::StatusRead {
        job: 0,
        since: ms(5),
        known,
        watermark: 10,
        runs: vec![(10, 7, outcome.map(Into::into))],
        is_free,
    }
}

fn passed(tick: u64, watermark: u64) -> Event {
    Event::Passed {
        job: 0,
        tick,
        watermark,
    }
}

#[test]
fn ticks_that_are_started_in_order_are_how_it_should_be() {
    let history = [
        (1, COMMITS(10)),
        (2, started(0, 10)),
        (3, passed(10, 10)),
        (3, passed(9, 10)),
        (4, started(1, 10)),
        (5, started(0, 30)),
    ];
    assert_eq!(names(&history), NOTHING);
}

#[test]
fn a_tick_that_is_started_twice_or_after_a_later_one_is_found() {
    let history = [(1, started(0, 10)), (9, started(0, 10))];
    assert_eq!(names(&history), ["StartedAgain"]);
    let kept = Event::Kept {
        job: 0,
        tick: 9,
        token: 7,
    };
    let history = |at| {
        let mut history = vec![(2, started(0, 10)), (9, started(0, 9))];
        history.insert(at, (at as u64 * 2 + 1, kept.clone()));
        history
    };
    assert_eq!(names(&history(0)), ["StartedAfter"]);
    assert_eq!(names(&history(1)), ["Overtaken"]);
}

#[test]
fn a_tick_that_is_started_at_the_wrong_time_is_found() {
    let untimely = Event::Started {
        job: 0,
        tick: 10,
        token: 7,
        timely: false,
    };
    assert_eq!(names(&[(1, untimely)]), ["Untimely"]);
}

#[test]
fn a_tick_that_is_refused_for_no_reason_is_found() {
    let history = [(1, passed(10, 10))];
    assert_eq!(names(&history), ["NeverClaimed"]);
    let history = [(1, COMMITS(10)), (1, started(0, 10)), (2, passed(11, 10))];
    assert_eq!(names(&history), ["NeverClaimed"], "it is an earlier one");
}

#[test]
fn a_tick_of_which_nobody_knows_what_became_is_found() {
    assert_eq!(names(&[(1, COMMITS(10))]), ["TickLost"]);
    let told = Event::NotStarted { job: 0, tick: 10 };
    assert_eq!(names(&[(1, COMMITS(10)), (2, told)]), NOTHING);
    assert_eq!(names(&[(1, COMMITS(10)), (2, started(0, 10))]), NOTHING);
}

#[test]
fn a_tick_that_is_forgotten_by_nodes_that_forget_nothing_is_found() {
    let remembered = |watermark| Event::Remembered { job: 0, watermark };
    let history = [(1, started(0, 10)), (2, Event::Mended), (9, remembered(0))];
    assert_eq!(names(&history), NOTHING, "it was started before");
    let history = |watermark| {
        [
            (1, Event::Mended),
            (2, started(0, 10)),
            (9, remembered(watermark)),
        ]
    };
    assert_eq!(names(&history(9)), ["NotRemembered"]);
    assert_eq!(names(&history(10)), NOTHING);
}

#[test]
fn a_status_that_nobody_could_have_been_told_is_found() {
    let told = |event| names(&[(1, COMMITS(10)), (1, started(0, 10)), (9, event)]);
    assert_eq!(told(status(10, None, true)), NOTHING);
    assert_eq!(told(status(11, None, true)), ["StatusBehind"]);
    assert_eq!(told(status(10, Some("ok"), true)), ["FalseRecord"]);
    let ended = [
        (1, COMMITS(10)),
        (1, started(0, 10)),
        (2, recorded("ok")),
        (9, status(10, Some("ok"), true)),
    ];
    assert_eq!(names(&ended), NOTHING);
    let nobody = names(&[(9, status(0, None, true))]);
    assert_eq!(nobody, ["NeverClaimed", "NeverClaimed"]);
}

#[test]
fn a_status_from_between_a_withdrawn_claim_and_the_next_one_is_no_older_than_it_must_be() {
    let told = |starts_at| {
        let (job, tick) = (0, 20);
        let commits = |token| Event::Commits { job, tick, token };
        let withdrawn = Event::Recorded {
            job,
            tick,
            token: 7,
            outcome: "unstarted".into(),
        };
        let starts = Event::Started {
            job,
            tick,
            token: 8,
            timely: true,
        };
        let mut history = vec![
            (1, COMMITS(10)),
            (1, started(0, 10)),
            (2, commits(7)),
            (3, withdrawn),
            (3, commits(8)),
            (starts_at, starts),
            (9, status(20, None, true)),
        ];
        history.sort_by_key(|(at, _)| *at);
        names(&history)
    };
    assert_eq!(told(6), NOTHING);
    assert_eq!(told(4), ["StatusBehind"], "a majority remembers it");
}

#[test]
fn a_lock_that_is_said_to_be_free_while_it_is_held_is_found() {
    let told = |since, until, is_free| {
        names(&[
            (1, COMMITS(10)),
            (since, acquired(1, 7, until)),
            (since, started(0, 10)),
            (9, status(10, None, is_free)),
        ])
    };
    assert_eq!(told(4, 90, true), ["FalselyFree"]);
    assert_eq!(told(4, 90, false), NOTHING);
    assert_eq!(
        told(6, 90, true),
        NOTHING,
        "it was free when it was asked for"
    );
    assert_eq!(told(4, 8, true), NOTHING, "it has ended since");
}

#[test]
fn a_record_of_what_did_not_happen_is_found() {
    let history = |outcome, starts: bool| {
        let mut history = vec![
            (1, COMMITS(10)),
            (2, Event::NotStarted { job: 0, tick: 10 }),
        ];
        history.extend(starts.then(|| (2, started(0, 10))));
        history.push((3, recorded(outcome)));
        history
    };
    assert_eq!(names(&history("ok", true)), NOTHING);
    assert_eq!(names(&history("unstarted", false)), NOTHING);
    assert_eq!(names(&history("ok", false)), ["FalseRecord"]);
    assert_eq!(names(&history("unstarted", true)), ["FalseRecord"]);
}

#[test]
fn a_run_that_is_left_open_where_nothing_goes_wrong_is_found() {
    let (job, tick, token) = (0, 10, 7);
    let open = Event::LeftOpen { job, tick, token };
    let history = [(1, COMMITS(10)), (2, started(0, 10)), (9, open.clone())];
    assert_eq!(
        names(&history),
        NOTHING,
        "its claimant may have been killed"
    );
    let history = [
        (1, Event::Settled),
        (1, COMMITS(10)),
        (2, started(0, 10)),
        (9, open),
    ];
    assert_eq!(names(&history), ["TickLost"]);
}

/// Somebody starts tick 10 who knows runs up to `settled` as settled; `remembered` says what each of three nodes does.
fn follows(settled: u64, remembered: [&[(u64, u64, bool)]; 3]) -> Vec<&'static str> {
    let follows = Event::Follows {
        job: 0,
        tick: 10,
        settled,
        majority: 2,
        remembered: remembered.map(<[_]>::to_vec).into(),
    };
    names(&[(1, follows)])
}

#[test]
fn a_start_after_a_run_that_was_cut_short_is_found_where_a_majority_remembers_that() {
    let (cut, well) = ((5, 1, true), (5, 1, false));
    let found = ["FollowsCutShort"];
    assert_eq!(follows(0, [&[cut], &[cut], &[]]), found);
    assert_eq!(follows(4, [&[cut], &[], &[cut]]), found);
    assert_eq!(follows(5, [&[cut], &[cut], &[]]), NOTHING, "it is settled");
    assert_eq!(follows(0, [&[cut], &[], &[]]), NOTHING, "one knows");
    assert_eq!(follows(0, [&[cut], &[cut], &[well]]), NOTHING, "it ended");
    // Only the newest one matters, and none that is not before.
    assert_eq!(follows(0, [&[cut, (6, 2, false)], &[cut], &[]]), NOTHING);
    assert_eq!(follows(0, [&[cut, (4, 2, false)], &[cut], &[]]), found);
    assert_eq!(
        follows(0, [&[(10, 1, true)], &[(10, 1, true)], &[]]),
        NOTHING
    );
}

#[test]
fn a_run_is_settled_once_and_was_there() {
    let told = |tick, settled| Event::CutShort {
        job: 0,
        tick,
        token: 7,
        outcome: None,
        settled,
    };
    let commits = Event::Commits {
        job: 0,
        tick: 10,
        token: 7,
    };
    let started = started(0, 10);
    let history = |last| [(1, commits.clone()), (2, started.clone()), (3, last)];
    assert_eq!(names(&history(told(10, 9))), NOTHING);
    assert_eq!(names(&history(told(10, 10))), ["Unreasoned"]);
    assert_eq!(names(&history(told(11, 0))), ["NeverClaimed"]);
}
