//! Callers in line have a key alone, in order, and each in the end; each rule that this needs is broken once.

use redlock_model::{InvalidScope, LineCheck, LineCounts, LineMutation, Report};

fn run(check: Result<LineCheck, InvalidScope>) -> Report<LineCounts> {
    let check = check.expect("the world is small");
    let report = check.run();
    if let Some(trace) = report.trace() {
        panic!("{check}:\n{trace}");
    }
    assert!(
        report.counts().settled > 0 && report.counts().heard > 0,
        "{check}"
    );
    report
}

// Shows: R9.1, R9.2, R9.3, R9.4.
#[test]
fn callers_in_line_have_the_key_alone_and_the_first_can_be_the_next() {
    let report = run(LineCheck::new(2, 0));
    assert!(report.states() > 100_000, "{}", report.states());
}

// Shows: R9.1.
#[test]
fn callers_in_line_have_the_key_alone_when_nodes_lose_their_data() {
    let report = run(LineCheck::new(2, 1).map(LineCheck::plain));
    assert!(report.counts().opened > 0);
}

// Shows: R9.1, R9.4.
#[test]
fn tokens_of_callers_in_line_are_in_order() {
    let report = run(LineCheck::of_tokens(2, 0));
    assert!(report.states() > 100_000, "{}", report.states());
    let report = run(LineCheck::of_tokens(1, 1).map(LineCheck::plain));
    assert!(report.counts().opened > 0);
}

#[test]
fn every_broken_rule_of_lines_is_noticed() {
    for mutation in LineMutation::ALL {
        let report = LineCheck::that_notices(mutation).run();
        let trace = report.trace().unwrap_or_else(|| panic!("{mutation}"));
        let breach = match mutation {
            LineMutation::EntryKeptAfterGift
            | LineMutation::FirstGivesBack
            | LineMutation::DeadHeadNotSkipped => "there is no way for",
            LineMutation::SignNotLookedAt => "without a sign of life",
            _ => "has the key beside",
        };
        let last = trace.lines().last().unwrap_or_default();
        assert!(last.contains(breach), "{mutation}:\n{trace}");
        assert_eq!(mutation.name().parse(), Ok(mutation));
    }
    assert!("none".parse::<LineMutation>().is_err());
}

#[test]
fn a_world_of_lines_that_does_not_fit_is_refused() {
    for (callers, crashes) in [(1, 0), (4, 0), (2, 4)] {
        let refused = LineCheck::new(callers, crashes).unwrap_err();
        assert!(refused.to_string().contains("2 or 3 callers"));
    }
    let refused = LineCheck::of_tokens(8, 0).unwrap_err();
    assert!(refused.to_string().contains("up to 7 times"));
}
