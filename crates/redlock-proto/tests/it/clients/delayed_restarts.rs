//! How nodes come to vote again whose restarts are declared to be delayed.

use redlock_proto::{Effect, NodeAnswer, NotAVote, Notice, Quarantine, Store};

use crate::clients::bench::{Bench, TTL};

fn quarantine() -> Quarantine {
    Quarantine::new(2 * TTL, 0.01).trusting_delayed_restarts()
}

/// Makes a bench in which node 1 has stopped and lost everything, and listens again after `ms` milliseconds.
fn back_after(ms: u64) -> Bench {
    let mut bench = Bench::with(&[0; 3], quarantine());
    bench.live(0, 50);
    bench.cut(0, 1);
    bench.nodes[1] = Store::new("started-again".into());
    bench.live(0, ms);
    bench.connect(0, 1);
    bench
}

fn absence() -> u64 {
    u64::try_from(quarantine().absence().as_millis()).expect("it is short")
}

fn has_acquired(bench: &mut Bench) -> bool {
    bench.acquire(0);
    // The node that was away must be one of the majority.
    bench.drop_sent(0, 2);
    bench.answer_all(0);
    let effects = bench.seen(0);
    effects
        .iter()
        .any(|effect| matches!(effect, Effect::Acquired { .. }))
}

// Shows: R1.4.
#[test]
fn a_master_that_stayed_away_for_the_longest_lease_votes_once_its_counters_are_known() {
    let mut bench = back_after(absence());
    bench.live(0, 100);
    assert!(has_acquired(&mut bench), "{:?}", bench.standing(0));
    let notices = bench.notices(0);
    let degraded = |notice: &Notice| matches!(notice, Notice::FencingDegraded { .. });
    assert!(!notices.iter().any(degraded), "{notices:?}");
}

// Shows: R1.5.
#[test]
fn a_master_that_did_not_stay_away_is_found_out_by_who_saw_it_before() {
    let mut bench = back_after(100);
    bench.live(0, 100);
    assert!(!has_acquired(&mut bench));
    let standing = bench.standing(0);
    let NodeAnswer::NotAVote {
        reason: NotAVote::Stuck { reason },
    } = &standing[1]
    else {
        panic!("{standing:?}")
    };
    assert!(reason.contains("was away for"), "{reason}");
    bench.live(0, absence());
    assert!(has_acquired(&mut bench), "{:?}", bench.standing(0));
}

#[test]
fn a_master_that_was_emptied_while_it_ran_is_quarantined_though_restarts_are_delayed() {
    let mut bench = Bench::with(&[0; 3], quarantine());
    bench.live(0, 50);
    bench.nodes[1].flush();
    bench.live(0, absence() / 2);
    assert!(!has_acquired(&mut bench), "{:?}", bench.standing(0));
}
