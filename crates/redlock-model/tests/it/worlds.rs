//! The protocol as it is, in worlds that take no time to explore.

use redlock_model::{Check, Report, Scope, TokenCounts, Trace, Verdict};

fn run(nodes: usize, clients: usize, crashes: u8, proposals: u8) -> Report<TokenCounts, Trace> {
    let scope = Scope::new(nodes, clients, crashes, proposals).expect("the scope is small");
    let report = Check::new(scope).run();
    if let Some(trace) = report.trace() {
        panic!("{scope}:\n{trace}");
    }
    assert!(report.holds(), "{scope}");
    report
}

// Shows: T3.5.
#[test]
fn tokens_keep_their_order_whatever_comes_when() {
    for nodes in 1..=5 {
        let report = run(nodes, 2, 0, 3);
        assert!(report.counts().agreed > 0, "{nodes}");
        // One node agrees with itself.
        assert_eq!(report.counts().written_back > 0, nodes > 1, "{nodes}");
    }
}

// Shows: T3.5.
#[test]
fn tokens_keep_their_order_among_three_clients() {
    for (nodes, proposals) in [(1, 3), (2, 3), (3, 2)] {
        run(nodes, 3, 0, proposals);
    }
}

// Shows: L3.4.
#[test]
fn tokens_keep_their_order_when_nodes_lose_their_counters() {
    // A floor takes a majority of voting nodes besides the one that it is for.
    for (nodes, crashes, opens) in [(1, 2, false), (2, 2, false), (3, 1, true), (4, 1, true)] {
        let report = run(nodes, 2, crashes, 1);
        assert_eq!(report.counts().opened > 0, opens, "{nodes}");
    }
}

#[test]
fn a_search_beyond_its_limit_has_no_verdict() {
    let check = Check::new(Scope::new(3, 2, 0, 3).unwrap()).limit(500);
    let report = check.run();
    assert!(matches!(report.verdict(), Verdict::Unfinished));
    assert!(!report.holds() && report.trace().is_none());
    assert!((501..520).contains(&report.states()), "{}", report.states());
}

#[test]
fn worlds_that_are_too_large_are_refused_by_name() {
    let of = |nodes, clients, crashes, proposals| {
        let refused = Scope::new(nodes, clients, crashes, proposals);
        refused.unwrap_err().to_string()
    };
    assert_eq!(of(6, 2, 0, 1), "nodes must be from 1 to 5, not 6");
    assert_eq!(of(3, 0, 0, 1), "clients must be from 1 to 4, not 0");
    assert_eq!(of(3, 2, 4, 1), "crashes must be from 0 to 3, not 4");
    assert_eq!(of(3, 2, 0, 0), "proposals must be from 1 to 9, not 0");
    let bits = of(5, 4, 3, 9);
    assert!(bits.ends_with("bits, and there are 128"), "{bits}");
}
