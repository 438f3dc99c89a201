//! How nodes that have lost their counters come to vote again, and what the order of tokens is then.

use redlock_proto::{Effect, NodeAnswer, NotAVote, Notice, Quarantine};

use crate::clients::bench::{Bench, TTL};

/// Returns the token that a client has just won.
fn token(effects: &[Effect]) -> Option<u64> {
    effects.iter().find_map(|effect| match effect {
        Effect::Acquired { tokens, .. } => Some(tokens.first().get()),
        _ => None,
    })
}

/// Lets the first client win a token that is far ahead of the clock, with nodes 0 and 1.
/// Then node 1 loses its data, and the second client cannot reach node 0, which keeps all of its own.
fn one_is_lost_and_one_is_away(quarantine: Quarantine) -> (Bench, u64) {
    let mut bench = Bench::with(&[0; 3], quarantine);
    bench.count_ahead(0);
    bench.acquire(0);
    bench.drop_sent(0, 2);
    bench.answer_all(0);
    let before = token(&bench.seen(0)).expect("nodes 0 and 1 are a majority");
    bench.finish(0);
    bench.answer_all(0);
    bench.cut(0, 1);
    bench.nodes[1].flush();
    bench.cut(1, 0);
    (bench, before)
}

fn quarantine() -> Quarantine {
    Quarantine::new(2 * TTL, 0.01)
}

fn is_degraded(notices: &[Notice]) -> bool {
    let degraded = |notice: &Notice| matches!(notice, Notice::FencingDegraded { .. });
    notices.iter().any(degraded)
}

// Shows: L3.5.
#[test]
fn a_node_that_lost_its_counters_waits_for_a_majority_that_has_not() {
    let (mut bench, before) = one_is_lost_and_one_is_away(quarantine());
    bench.live(1, 20_000);
    let standing = bench.standing(1);
    let NodeAnswer::NotAVote {
        reason: NotAVote::Stuck { reason },
    } = &standing[1]
    else {
        panic!("{standing:?}")
    };
    assert!(reason.contains("bring those back"), "{reason}");
    bench.acquire(1);
    bench.answer_all(1);
    assert_eq!(token(&bench.seen(1)), None);
    // It is enough that the other node is back.
    bench.connect(1, 0);
    bench.live(1, 1_000);
    bench.acquire(1);
    bench.drop_sent(1, 0);
    bench.answer_all(1);
    let after = token(&bench.seen(1)).expect("nodes 1 and 2 are a majority");
    assert!(after > before, "{after} after {before}");
    assert!(!is_degraded(&bench.notices(1)));
}

/// Asserts that a client waits for node 0, which it cannot reach, and which has a token that is far ahead of the clock.
///
/// Both servers that it can reach, at all of its addresses, have come back from what they should.
fn assert_waits_for_counters(bench: &mut Bench) {
    bench.live(1, 20_000);
    assert!(!is_degraded(&bench.notices(1)), "{:?}", bench.standing(1));
    bench.acquire(1);
    bench.answer_all(1);
    assert_eq!(token(&bench.seen(1)), None);
}

// Shows: L3.4.
#[test]
fn s11_one_server_behind_two_addresses_has_lost_the_counters_of_one() {
    for twin in [0, 1] {
        let (mut bench, _) = one_is_lost_and_one_is_away(quarantine());
        // Nodes 1 and 2 are left, and node 1 answers for node 0 too: two of three addresses have lost their counters.
        bench.reroute(0, 1);
        if twin == 1 {
            bench.reroute(1, 2);
            bench.reroute(2, 1);
        }
        bench.connect(1, 0);
        assert_waits_for_counters(&mut bench);
    }
}

// Shows: L3.4.
#[test]
fn s22_what_one_server_behind_two_addresses_knows_is_no_majority() {
    let (mut bench, before) = one_is_lost_and_one_is_away(quarantine());
    // Two of three addresses vote, and have never heard of the token.
    bench.reroute(0, 2);
    bench.connect(1, 0);
    assert_waits_for_counters(&mut bench);
    bench.reroute(0, 0);
    bench.connect(1, 0);
    bench.live(1, 1_000);
    bench.acquire(1);
    bench.drop_sent(1, 0);
    bench.answer_all(1);
    let after = token(&bench.seen(1)).expect("nodes 1 and 2 are a majority");
    assert!(after > before, "{after} after {before}");
}

/// Nodes 1 and 2 have been one server for as long as the client knows them, and node 0 restarts without data.
// Shows: L3.5, L3.7.
#[test]
fn a_second_node_of_one_server_counts_as_lost() {
    for lost in [0, 1] {
        let mut bench = Bench::with(&[0; 3], quarantine());
        bench.reroute(2, 1);
        bench.deploy(quarantine());
        bench.acquire(1);
        bench.answer_all(1);
        let before = token(&bench.seen(1)).expect("two servers vote");
        bench.finish(1);
        bench.answer_all(1);
        let nodes = (0..3).filter(|node| (*node > 0) == (lost == 1));
        bench.nodes[lost].flush();
        for node in nodes {
            bench.cut(1, node);
            bench.connect(1, node);
        }
        bench.live(1, 20_000);
        assert!(is_degraded(&bench.notices(1)), "{:?}", bench.standing(1));
        bench.acquire(1);
        bench.answer_all(1);
        let after = token(&bench.seen(1)).expect("two servers vote again");
        assert!(after > before, "{after} after {before}");
    }
}

// Shows: L3.9.
#[test]
fn who_prefers_leases_to_order_need_not_wait_and_is_told_what_it_rests_on() {
    let (mut bench, _) = one_is_lost_and_one_is_away(quarantine().guessing_floors());
    bench.live(1, 20_000);
    assert!(is_degraded(&bench.notices(1)));
    bench.acquire(1);
    bench.answer_all(1);
    assert!(token(&bench.seen(1)).is_some());
}

// Shows: L3.7.
#[test]
fn a_node_that_is_away_for_a_moment_is_read_before_the_clock_stands_in() {
    let (mut bench, before) = one_is_lost_and_one_is_away(quarantine());
    // Now two of three have lost their counters, and no majority has kept its own.
    bench.nodes[2].flush();
    bench.read(1, 1);
    while !bench.standing(1).iter().any(is_aged) {
        assert!(bench.ms() < 9_000, "{:?}", bench.standing(1));
        bench.live(1, 5);
    }
    bench.live(1, 60);
    assert!(!is_degraded(&bench.notices(1)), "it is not waited for");
    bench.connect(1, 0);
    bench.live(1, 500);
    assert!(is_degraded(&bench.notices(1)));
    bench.acquire(1);
    bench.drop_sent(1, 0);
    bench.answer_all(1);
    let after = token(&bench.seen(1)).expect("nodes 1 and 2 are a majority");
    assert!(after > before, "{after} after {before}");
}

fn is_aged(answer: &NodeAnswer) -> bool {
    let zero = std::time::Duration::ZERO;
    matches!(answer, NodeAnswer::NotAVote { reason: NotAVote::Quarantined { ready_in } } if *ready_in == zero)
}

// Shows: L3.4.
#[test]
fn a_client_that_has_seen_greater_counters_brings_them_into_the_floor() {
    let (mut bench, before) = one_is_lost_and_one_is_away(quarantine().guessing_floors());
    // The first client knows what it won; now it is the one that cannot reach node 0.
    bench.cut(0, 0);
    bench.connect(0, 1);
    bench.live(0, 20_000);
    bench.acquire(1);
    bench.answer_all(1);
    let after = token(&bench.seen(1)).expect("nodes 1 and 2 are a majority");
    assert!(after > before, "{after} after {before}");
}

// Shows: L3.8.
#[test]
fn a_blessing_says_that_the_order_of_tokens_rests_on_the_clock() {
    let (mut bench, _) = one_is_lost_and_one_is_away(quarantine());
    bench.live(1, 100);
    bench.bless(1);
    assert!(is_degraded(&bench.notices(1)));
    // With all nodes at hand it rests on what they know.
    let mut bench = Bench::new(3);
    bench.nodes[1].flush();
    bench.live(1, 6_000);
    bench.notices(1);
    bench.nodes[1].flush();
    bench.live(1, 100);
    bench.bless(1);
    assert!(!is_degraded(&bench.notices(1)));
}

// Shows: L3.7.
#[test]
fn a_first_start_is_told_from_a_loss() {
    let mut bench = Bench::new(3);
    for node in &mut bench.nodes {
        node.flush();
    }
    bench.live(0, 9_000);
    let first = |notice: &Notice| {
        matches!(
            notice,
            Notice::FencingDegraded {
                is_first_use: true,
                ..
            }
        )
    };
    let notices = bench.notices(0);
    assert!(notices.iter().any(first), "{notices:?}");
}

// Shows: L3.7.
#[test]
fn a_node_that_comes_to_vote_after_the_majority_of_a_first_start_is_no_loss() {
    let mut bench = Bench::new(5);
    // Two may vote first, and two of the others at the same time.
    for nodes in [0..2, 2..4, 4..5] {
        for node in nodes {
            bench.nodes[node].flush();
            bench.cut(0, node);
            bench.connect(0, node);
        }
        bench.pass(20);
    }
    bench.deploy(quarantine());
    // The last node answers one request at a time, so that the floors of the others are found one by one.
    while bench.ms() < 9_000 {
        for node in 0..4 {
            bench.answer(1, node);
        }
        if bench.ms().is_multiple_of(10) && bench.has_sent(1, 4) {
            bench.answer_once(1, 4);
        }
        bench.run_until(1, bench.ms() + 1);
    }
    let notices = bench.notices(1);
    let begins = |notice: &Notice| matches!(notice, Notice::FirstStart { nodes: 5, .. });
    assert!(notices.iter().any(begins), "{notices:?}");
    let votes = bench.standing(1);
    let votes = votes
        .iter()
        .filter(|it| !matches!(it, NodeAnswer::NotAVote { .. }));
    assert_eq!(votes.count(), 5);
    let is_loss = |notice: &Notice| {
        matches!(
            notice,
            Notice::FencingDegraded {
                is_first_use: false,
                ..
            }
        )
    };
    assert!(!notices.iter().any(is_loss), "{notices:?}");
}

// Shows: A4.
#[test]
fn a_shorter_max_ttl_wins_nothing_while_a_node_remembers_a_longer_one() {
    let long = Quarantine::new(60 * TTL, 0.01);
    let mut bench = Bench::with(&[0; 3], long);
    bench.acquire(0);
    bench.answer_all(0);
    assert!(token(&bench.seen(0)).is_some());
    for node in 0..2 {
        bench.nodes[node].flush();
    }
    bench.deploy(quarantine());
    for _ in 0..10 {
        bench.live(1, 1_000);
        bench.acquire(1);
        bench.answer_all(1);
        assert_eq!(token(&bench.seen(1)), None, "after {} ms", bench.ms());
    }
    let standing = bench.standing(1);
    let NodeAnswer::NotAVote {
        reason: NotAVote::Stuck { reason },
    } = &standing[0]
    else {
        panic!("{standing:?}")
    };
    assert!(reason.contains("longer max_ttl"), "{reason}");
    // A longer one is no danger.
    let mut bench = Bench::with(&[0; 3], quarantine());
    for node in 0..2 {
        bench.nodes[node].flush();
    }
    bench.deploy(Quarantine::new(4 * TTL, 0.01));
    bench.live(1, 9_000);
    bench.acquire(1);
    bench.answer_all(1);
    assert!(token(&bench.seen(1)).is_some());
}
