//! What is left out of the search changes no verdict.

use redlock_model::{Check, Mutation, Report, Scope, TokenCounts, Trace};

/// The protocol, and each mutation of it.
fn all(nodes: usize, clients: usize, crashes: u8, proposals: u8) -> impl Iterator<Item = Check> {
    let scope = Scope::new(nodes, clients, crashes, proposals).expect("the scope is small");
    let check = Check::new(scope);
    let mutations = Mutation::ALL.into_iter();
    std::iter::once(check).chain(mutations.map(move |mutation| check.mutation(mutation)))
}

fn steps(report: &Report<TokenCounts, Trace>) -> Option<usize> {
    report.trace().map(|trace| trace.steps())
}

/// Exchanging names keeps the length of every way, so even the shortest way to a breach is as long.
#[test]
fn the_search_without_symmetry_agrees() {
    let scopes = [(1, 2, 2, 2), (2, 3, 0, 2), (3, 2, 0, 3), (3, 2, 1, 1)];
    for (nodes, clients, crashes, proposals) in scopes {
        for check in all(nodes, clients, crashes, proposals) {
            let reduced = check.run();
            let full = check.without_symmetry().run();
            assert_eq!(full.holds(), reduced.holds(), "{check}");
            assert_eq!(steps(&full), steps(&reduced), "{check}");
            assert!(reduced.states() <= full.states(), "{check}");
        }
    }
}

#[test]
fn the_search_without_pruning_agrees() {
    for (nodes, clients, crashes, proposals) in [(1, 3, 2, 1), (2, 2, 2, 1), (3, 2, 0, 1)] {
        for check in all(nodes, clients, crashes, proposals) {
            let pruned = check.run();
            let full = check.without_pruning().run();
            assert_eq!(full.holds(), pruned.holds(), "{check}");
            assert!(steps(&full) >= steps(&pruned), "{check}");
        }
    }
}

#[test]
fn the_search_that_leaves_nothing_out_agrees() {
    for check in all(2, 2, 1, 1) {
        let reduced = check.run();
        let full = check.without_pruning().without_symmetry().run();
        assert_eq!(full.holds(), reduced.holds(), "{check}");
    }
}
