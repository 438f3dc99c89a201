//! No tick starts twice in small worlds, and each rule that this needs is broken once, which is noticed.

use redlock_model::{TickCheck, TickMutation};

// Shows: T4.7.
#[test]
fn no_tick_starts_twice_when_a_node_loses_its_data_between_claim_and_commit() {
    let report = TickCheck::new(2, 1).unwrap().run();
    assert!(report.holds(), "{:?}", report.trace());
    assert!(report.states() > 100_000 && report.counts().started > 0 && report.counts().opened > 0);
}

#[test]
fn every_broken_rule_of_claims_is_noticed() {
    for mutation in TickMutation::ALL {
        let report = TickCheck::that_notices(mutation).run();
        let trace = report.trace().unwrap_or_else(|| panic!("{mutation}"));
        assert!(trace.ends_with("tick 2 is started twice"), "{trace}");
        assert_eq!(mutation.name().parse(), Ok(mutation));
    }
    assert!("none".parse::<TickMutation>().is_err());
}

#[test]
fn a_world_that_does_not_fit_is_refused() {
    for (claimants, crashes) in [(0, 1), (4, 1), (2, 4)] {
        let refused = TickCheck::new(claimants, crashes).unwrap_err();
        assert!(refused.to_string().contains("from 1 to 3 claimants"));
    }
}
