//! Each rule that the protocol needs is broken once, and that is noticed.

use redlock_model::{Breach, Check, Mutation, Report, Scope, TokenCounts, Trace};

fn run(crashes: u8, mutation: Mutation) -> Report<TokenCounts, Trace> {
    let scope = Scope::new(3, 2, crashes, 1).expect("the scope is small");
    Check::new(scope).mutation(mutation).run()
}

/// How a rule is noticed: with how many crashes, and after how many steps at least.
///
/// With fewer crashes it is not, since what it is about does not happen.
const NOTICED: [(Mutation, u8, usize); 11] = [
    (Mutation::NoWriteBack, 0, 8),
    (Mutation::WriteBackWithoutKey, 0, 13),
    (Mutation::WriteBackUncounted, 0, 16),
    (Mutation::LateVoteUnbounded, 0, 16),
    (Mutation::NoSeed, 1, 10),
    (Mutation::SeedEarly, 1, 13),
    (Mutation::NoIncrement, 0, 8),
    (Mutation::MinimumToken, 0, 9),
    (Mutation::QuarantinedVotes, 1, 9),
    (Mutation::DegradedFloor, 2, 15),
    (Mutation::FloorUnread, 2, 18),
];

#[test]
fn every_broken_rule_is_noticed_by_the_shortest_way() {
    for (mutation, crashes, steps) in NOTICED {
        let report = run(crashes, mutation);
        let trace = report.trace().unwrap_or_else(|| panic!("{mutation}"));
        assert_eq!(trace.steps(), steps, "{mutation}:\n{trace}");
        let breach = trace.breach();
        assert!(
            matches!(
                breach,
                Some(Breach::Repeated { .. } | Breach::NotGreater { .. })
            ),
            "{mutation}: {breach:?}"
        );
        if let Some(fewer) = crashes.checked_sub(1) {
            assert!(run(fewer, mutation).holds(), "{mutation}");
        }
    }
}

#[test]
fn rules_that_ask_for_more_than_they_must_may_be_broken() {
    let safe = Mutation::ALL.into_iter().filter(|m| m.is_safe());
    for mutation in safe {
        for crashes in 0..=1 {
            assert!(run(crashes, mutation).holds(), "{mutation}");
        }
    }
}

#[test]
fn no_mutation_is_left_out() {
    for mutation in Mutation::ALL {
        let is_noticed = NOTICED.iter().any(|(noticed, ..)| *noticed == mutation);
        assert_ne!(is_noticed, mutation.is_safe(), "{mutation}");
        assert_eq!(mutation.name().parse(), Ok(mutation));
    }
    let unknown = "no-quorum".parse::<Mutation>().unwrap_err().to_string();
    assert!(unknown.contains("no-write-back"), "{unknown}");
}

#[test]
fn a_trace_tells_every_step_and_the_breach() {
    let report = run(0, Mutation::NoIncrement);
    let trace = report.trace().unwrap().to_string();
    let lines: Vec<&str> = trace.lines().collect();
    assert!(
        lines[0].starts_with("  1. A starts, and proposes 1"),
        "{trace}"
    );
    assert!(lines[0].ends_with("| 0      0      0"), "{trace}");
    assert!(lines[7].contains("B counts the votes of nodes"), "{trace}");
    assert_eq!(
        lines[8].trim(),
        "A and B both finished with token 1",
        "{trace}"
    );
}
