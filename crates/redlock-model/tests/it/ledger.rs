//! Retries, backfills and requests of one job heed each other, and each rule that this needs is broken once.

use redlock_model::{
    LedgerCheck, LedgerCounts, LedgerMutation,
    LedgerRole::{self, Backfill, Request, Retry, Schedule},
    Report,
};

fn run(roles: &[LedgerRole], cuts: u8, ranges: &[(u8, u8)], requests: u8) -> Report<LedgerCounts> {
    let check = LedgerCheck::new(roles, cuts).and_then(|check| check.requests(requests));
    let check = ranges.iter().fold(check, |check, (first, last)| {
        check.and_then(|check| check.backfill(*first, *last))
    });
    let check = check.expect("the world is small");
    let report = check.run();
    if let Some(trace) = report.trace() {
        panic!("{check}:\n{trace}");
    }
    report
}

// Shows: R6.5.
#[test]
fn retries_and_backfills_heed_each_other_when_a_run_is_cut_short() {
    let report = run(&[Schedule, Retry, Backfill], 1, &[(1, 2), (1, 2)], 0);
    assert!(report.states() > 10_000, "{}", report.states());
    assert!(
        report.counts().ended > 0 && report.counts().again > 0 && report.counts().backfilled > 0
    );
}

// Shows: R6.5.
#[test]
fn two_replicas_of_a_backfill_start_each_tick_once_when_one_crashes() {
    let report = run(&[Schedule, Backfill, Backfill], 1, &[(1, 2), (1, 2)], 0);
    assert!(report.counts().backfilled > 0);
}

// Shows: R6.7.
#[test]
fn requests_are_started_in_order_beside_ticks_and_none_is_lost() {
    let report = run(&[Schedule, Retry, Request, Request], 1, &[], 3);
    assert!(report.counts().requested > 0 && report.counts().again > 0);
}

#[test]
fn every_broken_rule_of_a_job_is_noticed() {
    for mutation in LedgerMutation::ALL {
        let check = LedgerCheck::that_notices(mutation);
        let report = check.run();
        let trace = report.trace().unwrap_or_else(|| panic!("{mutation}"));
        let breach = match mutation {
            LedgerMutation::CountedLate | LedgerMutation::NoLineToSpare => {
                "tick 2 runs again, though it had ended well"
            }
            LedgerMutation::BackfillUnseen
            | LedgerMutation::OwnLockMistaken
            | LedgerMutation::RunsNotReadAgain
            | LedgerMutation::BackfillByCountAlone
            | LedgerMutation::TickNotUsedUp => "tick 1 runs again, though it had ended well",
            LedgerMutation::CutShortPassed | LedgerMutation::CutShortPassedOnTime => {
                "tick 2 passes tick 1, whose run was cut short"
            }
            LedgerMutation::MissedUntold => "tick 2 was missed, and no replica reports it",
            _ => "run 1 was asked for, and is never started",
        };
        assert!(trace.ends_with(breach), "{mutation}:\n{trace}");
        assert_eq!(mutation.name().parse(), Ok(mutation));
    }
    assert!("none".parse::<LedgerMutation>().is_err());
}

#[test]
fn a_world_of_a_job_that_does_not_fit_is_refused() {
    for (roles, cuts) in [(&[][..], 1), (&[Retry; 5], 1), (&[Retry], 4)] {
        let refused = LedgerCheck::new(roles, cuts).unwrap_err();
        assert!(refused.to_string().contains("from 1 to 4 replicas"));
    }
    let check = LedgerCheck::new(&[Backfill], 0).unwrap();
    for (first, last) in [(0, 1), (1, 3), (3, 2), (3, 4)] {
        let refused = check.backfill(first, last).unwrap_err();
        assert!(refused.to_string().contains("1 or 2 of the ticks 1 to 3"));
    }
    assert!(
        check
            .requests(4)
            .unwrap_err()
            .to_string()
            .contains("up to 3")
    );
}
