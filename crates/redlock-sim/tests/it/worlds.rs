//! Some hundred worlds of each plan: nothing goes wrong, every mechanism is at work, and a seed tells
//! everything.

use std::num::NonZeroUsize;

use redlock_sim::{Campaign, CampaignReport, Counters, Plan, run};

fn campaign(plan: Plan, first: u64, seeds: u64) -> CampaignReport {
    let threads = NonZeroUsize::MIN.saturating_add(1);
    Campaign::new(plan, first, seeds).threads(threads).run()
}

fn assert_nothing_went_wrong(outcome: &CampaignReport) {
    if let Some(finding) = &outcome.first {
        panic!(
            "seed {} at {}: {}",
            finding.seed, finding.at, finding.violation
        );
    }
}

/// A mechanism that is not at work is not shown to be right.
fn assert_all_at_work(counters: &Counters, but: &[&str]) {
    for (label, count) in counters.iter() {
        let is_of_plan = OF_LINES.contains(&label) || OF_NAMED.contains(&label);
        let is_elsewhere = label == OF_SLICES || is_of_plan || but.contains(&label);
        assert!(count > 0 || is_elsewhere, "no {label}");
    }
}

/// What is at work only in the plan `slices`.
const OF_SLICES: &str = "acquires of clients that were too slow";
/// What is at work only in the plan `lines`.
const OF_LINES: [&str; 2] = [
    "keys given to callers in line",
    "of which without a word to them",
];
/// What is at work only in the plan `named`.
const OF_NAMED: [&str; 17] = [
    "inquiries repeated",
    "rolls kept without a mark",
    "failovers",
    "of which to a master that was no replica",
    "masters made replicas",
    "informants that lost their file",
    "inquiries without a majority",
    "servers not counted on",
    "rolls begun",
    "rolls replaced",
    "rolls joined",
    "rolls adopted",
    "sessions ended by another pair",
    "of which by another epoch alone",
    "calls without a confirmation",
    "calls that reached a replica",
    "calls under another epoch than before",
];
/// What is at work only where ticks are claimed.
const OF_TICKS: [&str; 9] = [
    "ticks after runs cut short",
    "statuses read",
    "ticks started",
    "ticks that had passed",
    "ticks too early",
    "ticks too late",
    "rounds of commit",
    "claims that were not confirmed",
    "ticks that a node may have forgotten",
];
/// What is at work only where locks are acquired: claims ask all nodes.
const OF_ACQUIRES: [&str; 2] = [
    "attempts that asked more nodes",
    "acquisitions of a bare majority",
];
/// What is at work only in the plan `sets`.
const OF_SETS: [&str; 7] = [
    "places kept in line",
    "acquisitions of several keys",
    "acquisitions of what others may share",
    "acquisitions of what others shared",
    "leases downgraded",
    "upgrades tried",
    "leases upgraded",
];
/// What is at work only where nodes that vote lose keys.
const REVOKED: [&str; 1] = ["leases revoked"];
/// What is at work only in the plan `default`.
const OF_ROUTES: [&str; 1] = ["addresses that led elsewhere"];
const OF_ASSUMPTIONS: [&str; 8] = [
    "acquisitions of strangers",
    "requests of strangers refused",
    "worlds with overlaps",
    "data set back while the run stayed",
    "worlds with what a broken assumption excuses",
    "clocks of replicas set",
    "clocks far behind for a while",
    "worlds with ticks started twice",
];

// Shows: J2, T1.2.
#[test]
fn nothing_goes_wrong_while_everything_is_at_work() {
    let outcome = campaign(Plan::Default, 0, 600);
    assert_nothing_went_wrong(&outcome);
    let counters = outcome.counters;
    let never = [&OF_TICKS[..], &OF_ASSUMPTIONS, &OF_SETS, &REVOKED].concat();
    assert_all_at_work(&counters, &never);
    assert!(counters.acquisitions >= 30 * counters.seeds);
    assert!(counters.faults() >= 10 * counters.seeds);
    assert!(counters.write_backs >= counters.seeds / 4);
    assert!(counters.seedings >= counters.seeds);
    assert!(counters.tombstones >= counters.seeds / 20);
    assert!(counters.heals >= counters.seeds / 4);
    assert!(counters.expired >= counters.seeds / 4);
    // Links and local queues decide as they do in production.
    assert!(counters.shed >= 10 * counters.seeds);
    assert!(counters.needless >= counters.seeds);
    assert!(counters.delayed >= 10 * counters.seeds);
    assert!(counters.handed_over >= counters.seeds);
    assert!(counters.waited_in_vain >= counters.seeds);
    // So does the choice of the nodes that are asked first.
    assert!(counters.won_narrowly >= counters.seeds);
    assert!(counters.widened >= counters.seeds);
    // Messages of nodes that give a key to the first in line come late or never, too.
    assert!(counters.gifts >= 20 * counters.seeds);
    assert!(counters.gifts_lost >= counters.seeds);
}

/// The acquires ask a majority first, so each lease is young on a bare majority when its node may be lost.
// Shows: T6.3.
#[test]
fn no_lease_and_no_acquire_fails_while_one_node_is_lost_at_any_moment() {
    let outcome = campaign(Plan::OneGone, 0, 200);
    assert_nothing_went_wrong(&outcome);
    let counters = outcome.counters;
    assert!(counters.won_narrowly >= 5 * counters.seeds);
    assert!(counters.acquisitions >= 15 * counters.seeds);
    assert!(counters.extensions >= 20 * counters.seeds);
    assert!(counters.crashes() >= counters.seeds);
    assert!(counters.freezes >= counters.seeds);
    assert!(counters.flushes >= counters.seeds / 2);
    assert!(counters.promotions >= counters.seeds / 2);
    assert!(counters.heals >= counters.seeds / 2);
}

#[test]
fn nothing_fails_because_clients_get_their_cpu_in_slices() {
    let outcome = campaign(Plan::Slices, 0, 500);
    assert_nothing_went_wrong(&outcome);
    let counters = outcome.counters;
    assert!(counters.acquisitions >= 30 * counters.seeds);
    assert!(counters.pauses >= 50 * counters.seeds);
    assert!(counters.extensions >= counters.seeds);
    assert!(counters.queued >= counters.seeds);
    // Their waits have ended, and those are mostly none.
    assert!(counters.too_slow * 50 <= counters.acquisitions);
}

// Shows: R3.6.
#[test]
fn nothing_goes_wrong_where_some_lock_several_keys_together() {
    let outcome = campaign(Plan::Sets, 0, 200);
    assert_nothing_went_wrong(&outcome);
    let counters = outcome.counters;
    assert!(
        counters.won_sets >= 2 * counters.seeds,
        "{}",
        counters.won_sets
    );
    assert!(counters.acquisitions >= 30 * counters.seeds);
    assert!(counters.write_backs >= counters.seeds / 4);
    assert!(counters.heals >= counters.seeds / 4);
}

// Shows: R4.9.
#[test]
fn nothing_goes_wrong_where_many_share_what_they_lock() {
    let outcome = campaign(Plan::Shared, 0, 300);
    assert_nothing_went_wrong(&outcome);
    let counters = outcome.counters;
    assert!(counters.won_together >= 5 * counters.seeds);
    assert!(counters.won_shared >= 2 * counters.won_together);
    assert!(counters.downgraded >= counters.seeds);
    assert!(counters.upgraded >= counters.seeds / 4);
    assert!(counters.upgrades >= 2 * counters.upgraded);
    assert!(counters.won_sets >= counters.seeds);
    assert!(counters.acquisitions >= 3 * counters.won_shared / 2);
    assert!(counters.heals >= counters.seeds / 4);
}

/// Each node has two servers, and most of these worlds have one node, where one wrong vote is enough for an overlap.
// Shows: R7.3, R7.5, R7.11, R7.12, R7.13.
#[test]
fn nothing_goes_wrong_where_informants_name_the_server_of_a_node() {
    let outcome = campaign(Plan::Named, 0, 150);
    assert_nothing_went_wrong(&outcome);
    let counters = outcome.counters;
    for label in OF_NAMED {
        let (_, count) = counters.iter().find(|(name, _)| *name == label).unwrap();
        assert!(count > 0, "no {label}");
    }
    assert!(counters.acquisitions >= 15 * counters.seeds);
    assert!(counters.seedings >= counters.seeds);
    assert!(counters.uncounted >= 50 * counters.seeds);
    assert!(counters.failovers >= 2 * counters.seeds);
    // Back to a master whose run, data and mark are as before.
    assert!(counters.failbacks >= counters.seeds / 2);
    assert!(counters.demotions >= counters.seeds / 2);
    assert!(counters.files_lost >= counters.seeds / 2);
    assert!(counters.rolls_replaced >= counters.seeds / 4);
    assert!(counters.rolls_joined >= counters.seeds / 4);
    assert!(counters.sessions_replaced >= counters.seeds);
    assert!(counters.unconfirmed >= 2 * counters.seeds);
    assert!(counters.other_epochs >= 2 * counters.seeds);
}

/// A node comes back with a key that it had lost, and is asked to extend it, just before the lease is let go: its
/// client cannot know, and the node does not vote for as long as the key can last.
// Shows: T5.11.
#[test]
fn a_key_that_comes_back_with_old_data_is_not_its_clients_to_release() {
    assert_nothing_went_wrong(&campaign(Plan::Default, 3_249, 1));
}

// Shows: A2.
#[test]
fn clocks_that_are_set_break_nothing_but_exclusion() {
    let outcome = campaign(Plan::ClockSteps, 0, 100);
    assert_nothing_went_wrong(&outcome);
    assert!(outcome.counters.steps >= outcome.counters.seeds);
    assert!(outcome.counters.disagreed > 0);
}

/// The world notices when a node that lives loses what it knew, and nothing else depends on that.
// Shows: A3.
#[test]
fn data_that_is_set_back_unseen_breaks_nothing_but_exclusion_and_order() {
    // Overlaps are rare: two in these worlds.
    let outcome = campaign(Plan::Rollback, 0, 1_500);
    assert_nothing_went_wrong(&outcome);
    assert!(outcome.counters.rewinds >= outcome.counters.seeds / 2);
    assert!(outcome.counters.overlaps > 0);
}

// Shows: A4.
#[test]
fn strangers_who_take_another_time_to_be_the_longest_are_refused() {
    let outcome = campaign(Plan::Strangers, 0, 150);
    assert_nothing_went_wrong(&outcome);
    assert!(outcome.counters.unlike >= 100 * outcome.counters.seeds);
    assert_eq!(outcome.counters.overlaps, 0);
    assert_eq!(outcome.counters.won_by_strangers, 0);
}

/// A client lets a key go over the address over which it took it, and that leads to another server by then.
// Shows: T5.10.
#[test]
fn a_key_stays_for_its_time_to_live_where_its_address_leads_elsewhere() {
    let outcome = campaign(Plan::Default, 32, 1);
    assert_nothing_went_wrong(&outcome);
    assert!(outcome.counters.reroutes > 0);
}

/// One of five nodes was started again, two have lost their data and another is out of reach: no majority is left to
/// say which tokens there were, whatever the one that was started again still knows.
// Shows: L3.7.
#[test]
fn a_node_that_was_started_again_is_out_like_one_that_lost_its_counters() {
    assert_nothing_went_wrong(&campaign(Plan::Default, 24_445, 1));
}

/// Clocks that are set forward end tombstones, which are no less gone once the clocks are set right.
#[test]
fn a_tombstone_that_ended_because_a_clock_was_set_is_not_missed_when_it_is_set_right() {
    assert_nothing_went_wrong(&campaign(Plan::ClockSteps, 1_132, 1));
}

// Shows: T4.9.
#[test]
fn no_tick_starts_twice_while_everything_is_at_work() {
    // In one world of two hundred, no majority confirms a claim: these have three.
    let outcome = campaign(Plan::Ticks, 300, 300);
    assert_nothing_went_wrong(&outcome);
    let counters = outcome.counters;
    // A claim is never handed over, and its token is always committed.
    let never = ["leases handed over", "write-backs"];
    let never = [
        &never[..],
        &OF_ACQUIRES,
        &OF_ASSUMPTIONS,
        &OF_ROUTES,
        &OF_SETS,
        &REVOKED,
        &["clocks set"],
    ]
    .concat();
    assert_all_at_work(&counters, &never);
    assert!(counters.ticks_started >= 10 * counters.seeds);
    assert!(counters.ticks_passed >= 10 * counters.seeds);
    assert!(counters.ticks_forgotten >= counters.seeds);
    assert!(counters.ticks_too_soon >= counters.seeds);
    assert!(counters.faults() >= 10 * counters.seeds);
}

/// All wall clocks are set all the time, and nodes lose data: that costs order and exclusion, and no tick starts twice.
// Shows: T4.9.
#[test]
fn no_tick_starts_twice_while_clocks_are_set() {
    let outcome = campaign(Plan::TicksClocks, 0, 210);
    assert_nothing_went_wrong(&outcome);
    let counters = outcome.counters;
    let never = [
        "leases handed over",
        "write-backs",
        // Hardly ever: those that were asked are asked again.
        "claims that were not confirmed",
        "worlds with ticks started twice",
        "data set back while the run stayed",
        "requests of strangers refused",
        "acquisitions of strangers",
    ];
    assert_all_at_work(
        &counters,
        &[&never[..], &OF_ACQUIRES, &OF_ROUTES, &OF_SETS, &REVOKED].concat(),
    );
    assert!(counters.ticks_started >= 10 * counters.seeds);
    assert!(counters.ticks_forgotten >= 10 * counters.seeds);
    assert!(counters.statuses >= 10 * counters.seeds);
    assert!(counters.steps >= counters.seeds);
    assert!(counters.wall_steps >= counters.seeds);
    assert!(counters.strays >= counters.seeds / 2);
    assert!(counters.crashes_lost >= counters.seeds);
}

/// The world notices when the assumption about ticks is broken, and nothing else depends on that.
// Shows: A5.
#[test]
fn clocks_that_are_all_set_back_while_nodes_lose_data_let_ticks_start_twice() {
    let outcome = campaign(Plan::TicksBack, 0, 60);
    assert_nothing_went_wrong(&outcome);
    assert!(outcome.counters.ticks_again >= outcome.counters.seeds / 20);
}

/// Its client stands still for longer than a caller waits, whose next attempt waits for room then.
#[test]
fn an_attempt_that_waited_for_room_does_not_begin_after_the_wait() {
    assert_nothing_went_wrong(&campaign(Plan::Ticks, 2_058, 1));
}

#[test]
fn a_seed_tells_everything() {
    for plan in Plan::ALL {
        for seed in 40..46 {
            let (once, again) = (run(seed, plan, false), run(seed, plan, true));
            assert_eq!(once.trace_hash, again.trace_hash, "seed {seed}");
            assert_eq!(once.counters, again.counters, "seed {seed}");
            assert!(once.trace.is_empty() && again.trace.len() > 100);
        }
    }
}

#[test]
fn seeds_make_different_worlds() {
    let mut hashes: Vec<u64> = (0..20)
        .map(|seed| run(seed, Plan::Default, false).trace_hash)
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 20);
}

#[test]
fn what_comes_of_a_campaign_does_not_depend_on_its_threads() {
    let alone = Campaign::new(Plan::Default, 500, 24).run();
    let together = campaign(Plan::Default, 500, 24);
    assert_eq!(alone.counters, together.counters);
    assert_eq!(alone.counters.seeds, 24);
}
