//! Exclusive holders are alone, tokens are in order, and each rule that this needs is broken once.

use redlock_model::{
    LeaseCheck, LeaseCounts, LeaseMutation, Report,
    Role::{self, Reader, Upgrade, Writer, WriterThenReader},
};

fn run(roles: &[Role], crashes: u8) -> Report<LeaseCounts> {
    let check = LeaseCheck::new(roles, crashes).expect("the world is small");
    let report = check.run();
    if let Some(trace) = report.trace() {
        panic!("{check}:\n{trace}");
    }
    assert!(report.counts().settled > 0, "{check}");
    assert_eq!(report.counts().opened > 0, crashes > 0, "{check}");
    let downgrades = roles.contains(&WriterThenReader);
    assert_eq!(report.counts().downgraded > 0, downgrades, "{check}");
    report
}

// Shows: R4.1.
#[test]
fn leases_are_alone_or_shared_and_counted_when_nodes_lose_their_data() {
    let report = run(&[Writer, Reader], 1);
    assert!(report.states() > 10_000, "{}", report.states());
    run(&[Reader, Reader], 1);
    run(&[Writer, Writer], 1);
}

// Shows: R4.3.
#[test]
fn a_key_that_was_had_alone_is_shared_when_nodes_lose_their_data() {
    let report = run(&[WriterThenReader, Reader], 1);
    assert!(report.states() > 100_000, "{}", report.states());
    run(&[WriterThenReader, Writer], 1);
}

/// The third is there for what a late request of the first does to the key of the second.
// Shows: R4.3.
#[test]
fn nobody_has_alone_what_another_has_joined_after_a_downgrade() {
    let report = run(&[WriterThenReader, Reader, Writer], 0);
    assert!(report.states() > 500_000, "{}", report.states());
}

/// No other client has the key exclusively between the shared lease and its upgrade either.
// Shows: R4.4.
#[test]
fn s26_nobody_has_alone_what_a_reader_beside_others_tries_to_have_alone() {
    let report = run(&[Reader, Upgrade], 1);
    assert!(report.states() > 10_000, "{}", report.states());
    run(&[Reader, Upgrade, Reader], 0);
    run(&[Reader, Upgrade, Writer], 0);
}

#[test]
fn every_broken_rule_of_leases_is_noticed() {
    for mutation in LeaseMutation::ALL {
        let report = LeaseCheck::that_notices(mutation).run();
        let trace = report.trace().unwrap_or_else(|| panic!("{mutation}"));
        let breach = match mutation {
            LeaseMutation::NoFloorForReaders
            | LeaseMutation::NoWriteBackOfReaders
            | LeaseMutation::TransactionOvertaken => "was handed out before",
            LeaseMutation::UpgradeOfWhatIsOver => "had the key alone since it was shared",
            _ => "and one of them alone",
        };
        assert!(trace.ends_with(breach), "{mutation}:\n{trace}");
        assert_eq!(mutation.name().parse(), Ok(mutation));
    }
    assert!("none".parse::<LeaseMutation>().is_err());
}

#[test]
fn a_world_of_leases_that_does_not_fit_is_refused() {
    for (roles, crashes) in [(&[][..], 1), (&[Reader; 4], 1), (&[Reader; 2], 4)] {
        let refused = LeaseCheck::new(roles, crashes).unwrap_err();
        assert!(refused.to_string().contains("from 1 to 3 clients"));
    }
    for roles in [
        &[Upgrade][..],
        &[Writer, Upgrade],
        &[Reader, Upgrade, Upgrade],
    ] {
        let refused = LeaseCheck::new(roles, 0).unwrap_err();
        assert!(refused.to_string().contains("the reader before it"));
    }
}
