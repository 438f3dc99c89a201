//! Leases that too few nodes have the key of to outlive the loss of one: late votes give them more.

use std::time::Duration;

use redlock_proto::{Effect, Lock, LockMode, Loss, OwnerId, Request, Verb};

use crate::clients::bench::{Bench, TTL};

/// How a node is lost.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It is killed, and back at once without its data.
    Restarts,
    /// It is killed and stays away.
    StaysAway,
    /// It is killed and back without its data, behind a connection that stands.
    RestartsUnseen,
    /// It does nothing any more.
    Freezes,
    /// An operator deletes all its data.
    IsEmptied,
}

const FAULTS: [Fault; 5] = [
    Fault::Restarts,
    Fault::StaysAway,
    Fault::RestartsUnseen,
    Fault::Freezes,
    Fault::IsEmptied,
];

impl Fault {
    /// Makes a node lost; returns whether it answers nothing from then on.
    fn strike(self, bench: &mut Bench, node: usize) -> bool {
        match self {
            Self::Restarts | Self::StaysAway => {
                bench.cut(0, node);
                bench.cut(1, node);
            }
            _ => {}
        }
        match self {
            Self::Restarts | Self::StaysAway | Self::RestartsUnseen => {
                bench.nodes[node].flush();
                bench.nodes[node].restart("again".into());
            }
            Self::IsEmptied => bench.nodes[node].flush(),
            Self::Freezes => {}
        }
        if let Self::Restarts = self {
            bench.connect(0, node);
        }
        matches!(self, Self::Freezes | Self::StaysAway)
    }
}

/// Lets time pass up to `until`, in steps of `step` milliseconds, in which all nodes but one answer at once.
fn live(bench: &mut Bench, until: u64, step: u64, silent: Option<usize>) {
    let nodes = bench.nodes.len();
    while bench.ms() < until {
        bench.pass(step);
        bench.due(0);
        while let Some(node) =
            (0..nodes).find(|node| Some(*node) != silent && bench.has_sent(0, *node))
        {
            bench.answer(0, node);
        }
    }
}

fn loss(bench: &mut Bench) -> Option<Loss> {
    bench.seen(0).iter().find_map(|effect| match effect {
        Effect::Lost { loss, .. } => Some(*loss),
        _ => None,
    })
}

fn holders(bench: &Bench) -> Vec<usize> {
    let locks = bench.locks();
    (0..locks.len()).filter(|node| locks[*node] > 0).collect()
}

fn others(bench: &Bench) -> Vec<usize> {
    let locks = bench.locks();
    (0..locks.len()).filter(|node| locks[*node] == 0).collect()
}

/// Makes a client that has a lease of a bare majority.
fn held(nodes: usize) -> Bench {
    let mut bench = Bench::narrow(nodes);
    bench.acquire(0);
    bench.answer_all(0);
    assert_eq!(holders(&bench).len(), nodes / 2 + 1);
    bench.seen(0);
    bench
}

/// Lets another client's failed attempt have a node's key for a second.
fn occupy(bench: &mut Bench, node: usize) {
    bench.run(node, &[of_another(acquire(None))]);
}

fn free(bench: &mut Bench, node: usize) {
    bench.run(node, &[of_another(Verb::Release { ttl: TTL })]);
}

fn acquire(wish: Option<Duration>) -> Verb {
    Verb::Acquire {
        ttl: TTL,
        proposal: 1,
        block: 1,
        wish,
        line: None,
    }
}

fn of_another(verb: Verb) -> Request {
    of_owner(9, LockMode::Exclusive, verb)
}

fn of_owner(owner: u8, mode: LockMode, verb: Verb) -> Request {
    Request::Lock {
        verb,
        lock: Lock {
            mode,
            keys: Bench::lock().into(),
            owner: OwnerId::from_random([owner; 16]),
        }
        .into(),
    }
}

// Shows: T6.3.
#[test]
fn one_node_that_is_lost_in_the_first_300_ms_ends_no_lease_of_a_bare_majority() {
    let ttl = TTL.as_millis() as u64;
    for nodes in [3, 5] {
        for fault in FAULTS {
            for after in 0..300 {
                let mut bench = held(nodes);
                let lost = holders(&bench)[after % (nodes / 2 + 1)];
                live(&mut bench, after as u64, 1, None);
                let is_silent = fault.strike(&mut bench, lost);
                let silent = is_silent.then_some(lost);
                live(&mut bench, 3 * ttl, 10, silent);
                let seen = loss(&mut bench);
                assert_eq!(seen, None, "{nodes} nodes, {fault:?} after {after} ms");
                // Nothing is left behind.
                bench.release(0);
                bench.answer_all(0);
                let left = holders(&bench);
                assert!(
                    left.is_empty(),
                    "{nodes} nodes, {fault:?} after {after} ms: {left:?}"
                );
            }
        }
    }
}

/// A node that forgot says that it has no key, and so do those that never had it: the others still have a majority of none.
// Shows: T6.4.
#[test]
fn a_node_that_forgot_and_those_that_never_had_the_key_do_not_end_a_lease() {
    let mut bench = held(5);
    let (had, never) = (holders(&bench), others(&bench));
    // They refuse the key to any client for now.
    never.iter().for_each(|node| occupy(&mut bench, *node));
    Fault::IsEmptied.strike(&mut bench, had[0]);
    live(&mut bench, 500, 1, None);
    assert_eq!(loss(&mut bench), None, "no other has a majority either");
    never.iter().for_each(|node| free(&mut bench, *node));
    live(&mut bench, 3_000, 1, None);
    assert_eq!(
        loss(&mut bench),
        None,
        "it is extended by those that never had it"
    );
    assert_eq!(holders(&bench).len(), 5);
}

// Shows: A3, T6.4.
#[test]
fn a_lease_ends_at_once_when_a_majority_votes_and_does_not_have_its_key() {
    let mut bench = held(5);
    let (had, never) = (holders(&bench), others(&bench));
    never.iter().for_each(|node| occupy(&mut bench, *node));
    bench.nodes[had[0]].drop_lock(&Bench::lock());
    live(&mut bench, 350, 1, None);
    assert_eq!(loss(&mut bench), Some(Loss::Revoked));
}

/// Others may have had the key in between.
// Shows: T1.10.
#[test]
fn a_node_that_lost_the_key_is_not_asked_for_it_before_a_majority_has_confirmed() {
    let mut bench = Bench::new(3);
    bench.acquire(0);
    bench.answer_all(0);
    bench.nodes[0].drop_lock(&Bench::lock());
    // One says nothing, so that the round fails.
    live(&mut bench, 540, 1, Some(1));
    assert_eq!(loss(&mut bench), None);
    assert_eq!(holders(&bench), [1, 2]);
    bench.drop_sent(0, 1);
    bench.nodes[1].drop_lock(&Bench::lock());
    live(&mut bench, 800, 1, None);
    assert_eq!(loss(&mut bench), Some(Loss::Revoked));
}

// Shows: T6.3.
#[test]
fn a_node_that_connects_late_is_asked_for_the_key_at_once() {
    let mut bench = Bench::narrow(3);
    bench.cut(0, 2);
    bench.acquire(0);
    bench.answer_all(0);
    assert_eq!(holders(&bench), [0, 1]);
    live(&mut bench, 150, 1, None);
    bench.connect(0, 2);
    bench.answer_all(0);
    assert_eq!(holders(&bench), [0, 1, 2]);
    bench.release(0);
    bench.connect(0, 2);
    bench.answer_all(0);
    assert_eq!(holders(&bench), [] as [usize; 0], "it is over");
}

// Shows: T6.3.
#[test]
fn a_node_that_is_lost_has_those_asked_at_once_that_never_had_the_key() {
    for fault in [Fault::StaysAway, Fault::Restarts, Fault::RestartsUnseen] {
        let mut bench = held(5);
        let (had, never) = (holders(&bench), others(&bench));
        live(&mut bench, 10, 1, None);
        fault.strike(&mut bench, had[1]);
        // What it answers to anything says that it has forgotten.
        bench.acquire_key(0, "{bench}:lock:others");
        bench.answer_all(0);
        let have = never.iter().all(|node| bench.value(*node).is_some());
        assert!(have, "{fault:?}");
    }
}

// Shows: T6.3.
#[test]
fn a_node_that_was_lost_before_the_lease_was_won_has_the_others_asked_at_once() {
    let mut bench = Bench::narrow(5);
    bench.acquire(0);
    let first: Vec<usize> = (0..5).filter(|node| bench.has_sent(0, *node)).collect();
    bench.answer_once(0, first[0]);
    bench.cut(0, first[0]);
    bench.answer_all(0);
    let have = holders(&bench);
    assert_eq!(have.len(), 5, "{have:?}");
}

// Shows: T5.4.
#[test]
fn a_lease_that_is_released_within_100_ms_asks_no_more_nodes() {
    let mut bench = held(5);
    let had = holders(&bench);
    bench.run_until(0, 99);
    bench.release(0);
    let told = |bench: &Bench| {
        (0..5)
            .filter(|node| bench.has_sent(0, *node))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&bench), had);
    bench.answer_all(0);
    bench.cut(0, had[0]);
    bench.connect(0, had[0]);
    bench.run_until(0, 400);
    assert!(told(&bench).is_empty());
}

// Shows: T5.4.
#[test]
fn s28_a_late_acquire_that_is_on_its_way_leaves_no_key_when_the_lease_is_released() {
    for is_cut in [false, true] {
        let mut bench = held(5);
        let late = others(&bench);
        bench.run_until(0, 100);
        assert!(late.iter().all(|node| bench.has_sent(0, *node)));
        let on_its_way = bench.sent(0);
        if is_cut {
            // It arrives after the release, over a connection that was given up.
            for node in &late {
                bench.cut(0, *node);
                for (_, round, _) in on_its_way.iter().filter(|(to, ..)| to == node) {
                    bench.lose(0, *node, *round);
                }
                bench.connect(0, *node);
            }
            bench.release(0);
            bench.answer_all(0);
        }
        for (node, _, request) in &on_its_way {
            bench.run(*node, std::slice::from_ref(request));
        }
        if !is_cut {
            bench.release(0);
            bench.answer_all(0);
        }
        assert_eq!(bench.locks(), [0; 5], "cut: {is_cut}");
    }
}

// Shows: T6.3.
#[test]
fn a_lease_that_its_holder_extends_is_given_to_the_other_nodes_too() {
    let mut bench = Bench::narrow(5);
    bench.renew = false;
    bench.acquire(0);
    bench.answer_all(0);
    bench.run_until(0, 99);
    assert_eq!(holders(&bench).len(), 3);
    bench.run_until(0, 100);
    bench.answer_all(0);
    assert_eq!(holders(&bench).len(), 5);
    live(&mut bench, 2_000, 10, None);
    assert_eq!(loss(&mut bench), Some(Loss::Expired), "it is not extended");
}

/// A node refuses readers while a writer waits, and the lease is a reader's from then on.
// Shows: R4.3, T6.3.
#[test]
fn a_downgrade_outlives_the_loss_of_nodes_though_a_writer_waits_at_the_others() {
    let mut bench = held(5);
    let (had, never) = (holders(&bench), others(&bench));
    for node in never {
        let reader = |verb| of_owner(8, LockMode::Shared, verb);
        let waits = of_another(acquire(Some(TTL)));
        let leaves = reader(Verb::Release { ttl: TTL });
        bench.run(node, &[reader(acquire(None)), waits, leaves]);
    }
    bench.downgrade(0, 7);
    bench.drop_sent(0, had[1]);
    bench.drop_sent(0, had[2]);
    bench.answer_all(0);
    assert!(is_extended(&mut bench));
}

// Shows: T6.3.
#[test]
fn an_extension_that_its_holder_asks_for_is_repeated_where_an_attempt_had_the_key() {
    let mut bench = held(5);
    let (had, never) = (holders(&bench), others(&bench));
    never.iter().for_each(|node| occupy(&mut bench, *node));
    bench.downgrade(0, 7);
    for round in 0..2 {
        bench.drop_sent(0, had[1]);
        bench.drop_sent(0, had[2]);
        if round == 1 {
            never.iter().for_each(|node| free(&mut bench, *node));
        }
        bench.answer_all(0);
        assert_eq!(is_extended(&mut bench), round == 1, "round {round}");
        bench.time_out(0);
    }
}

/// Each repeat would have a time limit of its own otherwise: the holder would wait for nine.
// Shows: T6.3.
#[test]
fn the_holder_has_an_answer_within_the_time_of_two_rounds() {
    let mut bench = held(5);
    let (had, never) = (holders(&bench), others(&bench));
    never.iter().for_each(|node| occupy(&mut bench, *node));
    bench.downgrade(0, 7);
    for round in 0..2 {
        assert!(!is_answered(&mut bench), "round {round}");
        bench.drop_sent(0, had[1]);
        bench.drop_sent(0, had[2]);
        bench.answer_all(0);
        bench.time_out(0);
    }
    assert!(is_answered(&mut bench));
}

/// A holder that asks again and again would keep its nodes busy with the repeats of all its rounds.
// Shows: T6.3.
#[test]
fn one_round_at_a_time_is_repeated() {
    let mut bench = held(5);
    others(&bench)
        .iter()
        .for_each(|node| occupy(&mut bench, *node));
    let had = holders(&bench);
    bench.downgrade(0, 7);
    for ask in 8..12 {
        bench.downgrade(0, ask);
    }
    for node in [had[1], had[2]] {
        bench.drop_sent(0, node);
    }
    bench.answer_all(0);
    bench.time_out(0);
    let is_answer = |effect: &&Effect| matches!(effect, Effect::ExtensionOver { .. });
    assert_eq!(bench.seen(0).iter().filter(is_answer).count(), 4);
}

/// A repeat would extend a lease that waits for its next holder, and no such lease is extended.
// Shows: T6.3.
#[test]
fn no_round_is_repeated_whose_holder_has_left_the_lease() {
    for is_left in [false, true] {
        let mut bench = held(5);
        let (had, never) = (holders(&bench), others(&bench));
        never.iter().for_each(|node| occupy(&mut bench, *node));
        bench.downgrade(0, 7);
        if is_left {
            bench.park(0);
        }
        bench.drop_sent(0, had[1]);
        bench.drop_sent(0, had[2]);
        bench.answer_all(0);
        bench.time_out(0);
        assert_eq!(is_answered(&mut bench), is_left);
    }
}

fn is_answered(bench: &mut Bench) -> bool {
    let is_answer = |effect: &Effect| matches!(effect, Effect::ExtensionOver { .. });
    bench.seen(0).iter().any(is_answer)
}

fn is_extended(bench: &mut Bench) -> bool {
    let is_done = |effect: &Effect| {
        let Effect::ExtensionOver { result, .. } = effect else {
            return false;
        };
        assert!(result.is_ok(), "{result:?}");
        true
    };
    bench.seen(0).iter().any(is_done)
}

// Shows: T6.6.
#[test]
fn l02_a_node_that_is_lost_between_its_vote_and_its_confirmation_fails_no_acquire() {
    for nodes in [3, 5] {
        for is_cut in [true, false] {
            let mut bench = Bench::narrow(nodes);
            bench.acquire(0);
            let first: Vec<usize> = (0..nodes).filter(|node| bench.has_sent(0, *node)).collect();
            // Its token must be written back.
            bench.count_ahead(first[0]);
            for node in &first {
                bench.answer_once(0, *node);
            }
            let lost = first[1];
            if is_cut {
                bench.cut(0, lost);
            }
            let is_there = |node: &usize| *node != lost;
            while let Some(node) = (0..nodes)
                .filter(is_there)
                .find(|node| bench.has_sent(0, *node))
            {
                bench.answer_once(0, node);
            }
            let seen = bench.seen(0);
            assert!(matches!(seen[..], [Effect::Acquired { .. }]), "{seen:?}");
        }
    }
}

/// Its wait goes on, though it bears with no outage: a majority is up.
// Shows: T6.6.
#[test]
fn a_node_that_is_lost_before_its_confirmation_ends_no_wait_while_others_are_in_the_way() {
    // The node of the other answers before the attempt is won, or after.
    for order in [[2, 0, 1], [0, 1, 2]] {
        let mut bench = Bench::new(3);
        bench.quorum_wait = Some(Duration::ZERO);
        bench.wait(10 * TTL);
        bench.acquire(1);
        bench.answer_once(1, 2);
        bench.count_ahead(0);
        bench.acquire(0);
        for node in order {
            bench.answer_once(0, node);
        }
        bench.cut(0, 1);
        bench.live(0, 300);
        let seen = bench.seen(0);
        let is_over = |effect: &Effect| matches!(effect, Effect::NotAcquired { .. });
        assert!(!seen.iter().any(is_over), "{seen:?}");
        bench.connect(0, 1);
        bench.live(0, 1_000);
        let seen = bench.seen(0);
        assert!(
            matches!(seen[..], [Effect::Acquired { .. }, ..]),
            "{seen:?}"
        );
    }
}

/// Its vote is late, and counts in the place of a node that is lost meanwhile.
// Shows: R9.2.
#[test]
fn a_node_that_gives_the_key_while_others_confirm_is_asked_to_confirm_as_well() {
    let mut bench = Bench::new(3);
    bench.wait(10 * TTL);
    bench.count_ahead(0);
    (0..3).for_each(|node| bench.take(node, 1));
    bench.acquire(0);
    bench.live(0, 300);
    bench.listen(0);
    bench.live(0, 300);
    bench.free(0, 0);
    bench.free(0, 1);
    bench.cut(0, 1);
    bench.free(0, 2);
    for node in [0, 2] {
        assert!(bench.has_asked_to_extend(0, node), "{node}");
        bench.answer(0, node);
    }
    let seen = bench.seen(0);
    let is_won = |effect: &Effect| matches!(effect, Effect::Acquired { .. });
    assert!(seen.iter().any(is_won), "{seen:?}");
}
