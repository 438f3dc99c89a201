//! A node whose server others name gives no two leases at a time; each rule that this needs is broken once.

use redlock_model::{NamedCheck, NamedCounts, NamedMutation, NamedRules, NamedWorld, Report};

fn run(world: NamedWorld) -> Report<NamedCounts> {
    let check = NamedCheck::new(NamedRules::Term, world).expect("the world is small");
    let report = check.run();
    if let Some(trace) = report.trace() {
        panic!("{check}:\n{trace}");
    }
    assert!(
        report.counts().granted > 0 && report.counts().quarantines > 0,
        "{check}"
    );
    report
}

/// Returns the way to a breach without terms.
fn breach(world: NamedWorld) -> String {
    let check = NamedCheck::new(NamedRules::Server, world).expect("the world is small");
    let report = check.run();
    let trace = report.trace().unwrap_or_else(|| panic!("{check}"));
    assert!(trace.ends_with("x has a lease beside y"), "{trace}");
    trace.to_owned()
}

// Shows: R7.1, R7.2, R7.3, R7.5.
#[test]
fn a_failover_and_one_back_give_no_two_leases() {
    let report = run(NamedWorld::of(2));
    assert!(report.states() > 50_000, "{}", report.states());
    run(NamedWorld::of(2).false_pair().late_promotions());
    run(NamedWorld::of(1).late_requests());
}

// Shows: R7.11, R7.12, R7.13.
#[test]
fn informants_that_lose_their_files_give_no_two_leases() {
    for world in [
        NamedWorld::of(1).lost(2),
        NamedWorld::of(1).lost(1).restarts(1),
        NamedWorld::of(1).lost(1).slow_answers().plain(),
    ] {
        let report = run(world);
        assert!(report.counts().relisted > 0 && report.counts().extended > 0);
    }
}

// Shows: R7.11.
#[test]
fn informants_that_forget_each_other_give_no_two_leases() {
    run(NamedWorld::of(1).five(3));
}

#[test]
fn without_terms_there_are_four_ways_to_two_leases() {
    let back = breach(NamedWorld::of(2));
    assert!(back.contains("for epoch 2, and promotes A"), "{back}");
    let lost = breach(NamedWorld::of(1).lost(1));
    assert!(lost.contains("loses its file"), "{lost}");
    let views = breach(NamedWorld::of(1).five(2));
    assert!(views.contains("forgets those"), "{views}");
    // No step is left out of it, though informants change their names on the way.
    assert!(
        views.contains("y hears B/1 from S4, B/1 from S5"),
        "{views}"
    );
    let mixed = breach(NamedWorld::of(2).new_data());
    let named = "y hears A/2 from S1, A/0 from S2, B/1 from S3: it counts on A";
    assert!(mixed.contains(named), "{mixed}");
}

#[test]
fn every_broken_rule_of_named_servers_is_noticed() {
    for mutation in NamedMutation::ALL {
        let check = NamedCheck::that_notices(mutation);
        assert!(check.run().trace().is_some(), "{mutation}");
        assert_eq!(mutation.name().parse(), Ok(mutation));
    }
    assert!("none".parse::<NamedMutation>().is_err());
}

#[test]
fn everything_keeps_its_name_in_a_trace() {
    let check = NamedCheck::that_notices(NamedMutation::NoEpochInMark);
    let report = check.run();
    let trace = report.trace().unwrap();
    assert!(trace.contains("S1 is elected by S1 S2 for epoch 1, and promotes B"));
    assert!(trace.contains("S1 is elected by S1 S2 for epoch 2, and promotes A"));
}

#[test]
fn a_world_of_named_servers_that_does_not_fit_is_refused() {
    let refused = |rules, world| {
        let refused = NamedCheck::new(rules, world);
        refused.unwrap_err().to_string()
    };
    let many = refused(NamedRules::Term, NamedWorld::of(4));
    assert_eq!(many, "there are up to 3 failovers, not 4");
    let short = refused(NamedRules::Term, NamedWorld::of(1).clocks(0, 1));
    assert_eq!(short, "times are from 1 to 3, not 0");
    let slow = refused(NamedRules::Server, NamedWorld::of(1).slow_answers());
    assert_eq!(slow, "slow answers are of rules with terms only");
    let all = NamedWorld::of(3).five(3).lost(3).late_requests();
    let bits = refused(NamedRules::Term, all.slow_answers().late_promotions());
    assert!(bits.ends_with("bits, and there are 128"), "{bits}");
}
