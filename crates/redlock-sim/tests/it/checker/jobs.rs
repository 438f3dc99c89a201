//! Ticks of jobs, what is remembered of their runs, and what is told of that.

use redlock_sim::Event;

use crate::checker::{NOTHING, acquired, ms, names};

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

/// Returns a report of tick 10 and its outcome to a client that asked at 5 ms, when a majority knew `known`.
fn status(known: u64, outcome: Option<&str>, is_free: bool) -> Event {
    Event::StatusRead {
        job: 0,
        since: ms(5),
        known: vec![vec![(known, 7)]],
        majority: 1,
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

// Shows: J1.
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
    let told = |starts_at, remembered| {
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
        let mut asked = status(20, None, true);
        if let Event::StatusRead { known, .. } = &mut asked {
            *known = vec![vec![(tick, remembered)]];
        }
        let mut history = vec![
            (1, COMMITS(10)),
            (1, started(0, 10)),
            (2, commits(7)),
            (3, withdrawn),
            (3, commits(8)),
            (starts_at, starts),
            (9, asked),
        ];
        history.sort_by_key(|(at, _)| *at);
        names(&history)
    };
    assert_eq!(told(6, 7), NOTHING);
    assert_eq!(told(4, 8), ["StatusBehind"], "a majority remembers it");
}

/// What a node knew of the job may have been that run alone; the node that knew an earlier one loses its data.
#[test]
fn a_status_is_not_behind_a_majority_that_rests_on_a_withdrawn_claim() {
    let told = |token, claims: &[(u64, Event)]| {
        let status = Event::StatusRead {
            job: 0,
            since: ms(5),
            known: vec![vec![(10, 7)], vec![(20, token)], vec![]],
            majority: 2,
            watermark: 0,
            runs: Vec::new(),
            is_free: true,
        };
        let before = [(1, COMMITS(10)), (1, started(0, 10))];
        names(&[&before, claims, &[(9, status)]].concat())
    };
    let withdrawn = Event::Recorded {
        job: 0,
        tick: 20,
        token: 7,
        outcome: "unstarted".into(),
    };
    let not_started = Event::NotStarted { job: 0, tick: 20 };
    let withdrawn = [(2, COMMITS(20)), (6, withdrawn), (6, not_started)];
    assert_eq!(told(7, &withdrawn), NOTHING);
    let another = told(8, &withdrawn);
    assert_eq!(
        another,
        ["StatusBehind"],
        "nodes keep a later run of the tick"
    );
    let started = [(2, COMMITS(20)), (2, started(0, 20))];
    assert_eq!(
        told(7, &started),
        ["StatusBehind"],
        "a majority knew tick 10"
    );
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

/// Returns the violations of a replica that starts tick 10 and knows runs up to `settled` as settled.
///
/// `remembered` has the runs that each of three nodes remembers.
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
