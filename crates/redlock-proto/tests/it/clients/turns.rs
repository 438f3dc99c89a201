//! Renewals that ask a majority, for which the nodes take turns.

use redlock_proto::{Effect, Notice, Request, RequestError, Verb};

use crate::clients::bench::Bench;

/// Makes a client that has a lease of which all nodes have the key.
fn held() -> Bench {
    let mut bench = Bench::narrow(5);
    bench.acquire(0);
    bench.answer_all(0);
    bench.run_until(0, 101);
    bench.answer_all(0);
    assert!(has_all(&bench));
    bench.seen(0);
    bench
}

/// Returns the nodes that are asked to keep a key for longer.
fn asked(bench: &Bench) -> Vec<usize> {
    let asked = (0..5).filter(|node| bench.has_asked_to_extend(0, *node));
    asked.collect()
}

fn has_all(bench: &Bench) -> bool {
    bench.locks().iter().all(|locks| *locks > 0)
}

/// Lets time pass until the client asks for something; returns the nodes that it asks.
fn next_renewal(bench: &mut Bench) -> Vec<usize> {
    let limit = bench.ms() + 400;
    while asked(bench).is_empty() {
        bench.run_until(0, bench.ms() + 1);
        assert!(bench.ms() < limit, "the lease is not renewed");
    }
    asked(bench)
}

fn is_extended(bench: &mut Bench) -> bool {
    let seen = bench.seen(0);
    let lost = seen
        .iter()
        .any(|effect| matches!(effect, Effect::Lost { .. }));
    assert!(!lost, "{seen:?}");
    seen.iter()
        .any(|effect| matches!(effect, Effect::Extended { .. }))
}

fn has_failed(bench: &mut Bench) -> bool {
    let notices = bench.notices(0);
    notices
        .iter()
        .any(|notice| matches!(notice, Notice::ExtensionFailed { .. }))
}

// Shows: T6.5.
#[test]
fn two_renewals_in_a_row_ask_all_nodes_and_each_a_majority() {
    let mut bench = held();
    let mut before: Vec<usize> = (0..5).collect();
    for _ in 0..20 {
        let now = next_renewal(&mut bench);
        assert_eq!(now.len(), 3, "{now:?}");
        let are_all = (0..5).all(|node| now.contains(&node) || before.contains(&node));
        assert!(are_all, "{before:?} {now:?}");
        bench.answer_all(0);
        assert!(is_extended(&mut bench));
        assert!(has_all(&bench), "no node has let the key go");
        before = now;
    }
    bench.release(0);
    assert!(
        (0..5).all(|node| bench.has_sent(0, node)),
        "all have the key"
    );
}

// Shows: T6.5.
#[test]
fn a_renewal_that_a_node_cannot_confirm_asks_all_at_once() {
    let mut bench = held();
    let first = next_renewal(&mut bench);
    bench.answer_once(0, first[0]);
    bench.answer_once(0, first[1]);
    bench.cut(0, first[2]);
    assert_eq!(asked(&bench).len(), 4, "all that are connected");
    bench.answer_all(0);
    assert!(is_extended(&mut bench));
    assert!(!has_failed(&mut bench), "the renewal has not failed");
    for _ in 0..6 {
        let next = next_renewal(&mut bench);
        assert!(next.len() == 3 && !next.contains(&first[2]), "{next:?}");
        bench.answer_all(0);
        assert!(is_extended(&mut bench));
    }
}

// Shows: T6.5.
#[test]
fn a_hung_node_delays_a_renewal_by_half_of_its_time_limit_and_is_not_asked_first_again() {
    let mut bench = held();
    let first = next_renewal(&mut bench);
    let began = bench.ms();
    let hung = first[1];
    bench.answer_once(0, first[0]);
    bench.answer_once(0, first[2]);
    bench.drop_sent(0, hung);
    bench.run_until(0, began + 99);
    assert!(asked(&bench).is_empty(), "it may be busy");
    bench.run_until(0, began + 101);
    assert_eq!(asked(&bench).len(), 5, "it was waited for long enough");
    bench.drop_sent(0, hung);
    for node in (0..5).filter(|node| *node != hung) {
        bench.answer(0, node);
    }
    assert!(is_extended(&mut bench));
    bench.drop_sent(0, hung);
    let next = next_renewal(&mut bench);
    assert!(next.len() == 3 && !next.contains(&hung), "{next:?}");
}

// Shows: T6.5.
#[test]
fn a_node_that_has_lost_the_key_is_given_it_again_by_the_next_renewal_that_asks_it() {
    let mut bench = held();
    let first = next_renewal(&mut bench);
    bench.answer_all(0);
    let lost = (0..5).find(|node| !first.contains(node)).unwrap();
    bench.nodes[lost].drop_lock(&Bench::lock());
    assert!(next_renewal(&mut bench).contains(&lost));
    bench.answer_all(0);
    assert!(is_extended(&mut bench));
    assert!(has_all(&bench), "it was healed");
    assert!(!has_failed(&mut bench));
}

// Shows: T6.5.
#[test]
fn a_renewal_that_comes_late_or_after_one_that_failed_asks_all() {
    let mut bench = held();
    bench.pass(600);
    bench.due(0);
    assert_eq!(asked(&bench).len(), 5, "it is late");
    bench.answer_all(0);

    // All answer with an error: the majority, and then all nodes.
    for expected in [3, 5] {
        let asked = next_renewal(&mut bench);
        assert_eq!(asked.len(), expected);
        for node in asked {
            let error = RequestError::not_executed("no memory".into());
            bench.fail(0, node, error);
        }
    }
    assert!(has_failed(&mut bench));
    assert_eq!(
        next_renewal(&mut bench).len(),
        5,
        "the one before has failed"
    );
    bench.answer_all(0);
    assert!(is_extended(&mut bench));
}

// Shows: T6.5.
#[test]
fn the_nodes_take_turns_once_a_client_has_many_leases() {
    for (leases, expected) in [(63, 5), (64, 3)] {
        let mut bench = Bench::adaptive(5);
        for key in 0..leases {
            bench.acquire_key(0, &format!("{{bench}}:lock:{key}"));
            bench.answer_all(0);
        }
        assert!(asked(&bench).is_empty());
        next_renewal(&mut bench);
        let sent = bench.sent(0);
        // Young leases also ask the nodes that do not have their keys.
        let extends = |(.., request): &&(_, _, Request)| matches!(request, Request::Lock { verb, .. } if matches!(verb, Verb::Extend { .. }));
        assert_eq!(sent.iter().filter(extends).count(), leases * expected);
    }
}
