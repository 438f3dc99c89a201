//! Mistakes that show on real servers: each is caught by a test with separate processes, faults and clocks.

use super::mutant::{Catch, Mutant};

const SCRIPT: &str = "crates/redlock-core/src/node/redis/node.lua";
const ACQUIRE: &str = "crates/redlock-proto/src/client/acquire.rs";
const ELECTORATE: &str = "crates/redlock-proto/src/electorate.rs";
const FACTS: &str = "crates/redlock-proto/src/facts.rs";
const LEASE: &str = "crates/redlock-proto/src/lease.rs";

pub(super) const SERVERS: &[Mutant] = &[
    restart_guard(
        "quarantine-ignored",
        ELECTORATE,
        "in_time().and_then(|()| quarantined(*ready_in))",
        "{ let _ = ready_in; in_time() }",
        "s15_a_master_that_crashed",
    ),
    restart_guard(
        "stale-snapshot-trusted",
        SCRIPT,
        RUN,
        ANY_RUN,
        "s15_a_master_with_a_stale_snapshot",
    ),
    restart_guard(
        "promotion-trusted",
        SCRIPT,
        RUN,
        ANY_RUN,
        "s16_a_promoted_replica",
    ),
    restart_guard(
        "missing-mark-votes",
        SCRIPT,
        "if found == voting and micros then",
        "if (found == voting or not found) and micros then",
        "s15_a_master_that_was_flushed",
    ),
    restart_guard(
        "restart-behind-a-relay-trusted",
        SCRIPT,
        "if found == voting and micros then",
        "if (found == voting or not found) and micros then",
        "s15_a_restart_behind_a_connection",
    ),
    restart_guard(
        "half-a-quarantine",
        "crates/redlock-proto/src/quarantine.rs",
        "length: ms(length) + 5",
        "length: ms(length) / 2",
        "s15_a_master_that_crashed",
    ),
    restart_guard(
        "no-seed",
        "crates/redlock-proto/src/client/watch.rs",
        "Floor::Known(floor) => floor,",
        "Floor::Known(_) => 0,",
        "s22_masters_that_lost_their_counters",
    ),
    restart_guard(
        "waiting-spins",
        "crates/redlock-proto/src/votes.rs",
        "Vote::Cast(Outcome::NotAVote { ready_in }) => *ready_in,\n                _ => None,\n            })\n            .collect();\n        free_in",
        "Vote::Cast(Outcome::NotAVote { .. }) => Some(Duration::ZERO),\n                _ => None,\n            })\n            .collect();\n        free_in",
        "a_first_start_waits",
    ),
    on_servers(
        "replica-votes",
        FACTS,
        "if !self.is_master {",
        "if false {",
        "--test node_checks",
        "s11_a_replica",
    ),
    on_servers(
        "one-server-votes-twice",
        ELECTORATE,
        "let is_same = |other: &Known| other.facts.as_ref().is_some_and(|f| f.run == *run);",
        "let is_same = |other: &Known| other.facts.as_ref().is_some_and(|f| f.run != *run && false);",
        "--test node_checks",
        "s11_one_server",
    ),
    on_servers(
        "eviction-accepted",
        FACTS,
        "filter(|p| &***p != \"noeviction\")",
        "filter(|_| false)",
        "--test node_checks",
        "a_node_that_evicts",
    ),
    on_servers(
        "another-max-ttl-accepted",
        SCRIPT,
        "elseif found and its_policy ~= policy then",
        "elseif false then",
        "--test node_checks",
        "a_node_that_is_used_with_another",
    ),
    on_servers(
        "clock-agreement-ignored",
        ELECTORATE,
        "match self.clocks.agrees(node, now) {",
        "match self.clocks.agrees(node, now) || node < 9 {",
        "--test node_clocks",
        "s14_a_clock_that_is_stepped",
    ),
    on_servers(
        "clock-step-ends-the-quarantine",
        SCRIPT,
        "math.min(now - last, tonumber(step))",
        "now - last",
        "--test node_clocks",
        "s14_clocks_that_are_set_forward",
    ),
    on_servers(
        "counter-beyond-its-range-spreads",
        ACQUIRE,
        "if seen > FencingToken::MAX.get() {",
        "if false {",
        "--test counters",
        "a_counter_beyond_its_range_costs_one_vote",
    ),
    on_servers(
        "no-write-back",
        ACQUIRE,
        "Settled::WriteBack { counter, nodes } => (*counter, Some(nodes)),",
        "Settled::WriteBack { counter, .. } => (*counter, None::<&Vec<usize>>),",
        "--test fencing",
        "s22_a_token_that_one_node_has_alone",
    ),
    on_servers(
        "tomb-ignored",
        SCRIPT,
        "    elseif owners[tomb] then\n",
        "    elseif false then\n",
        "--test network",
        "s28_a_request_on_a_connection_that_was_given_up",
    ),
    on_servers(
        "no-healing",
        LEASE,
        "            && outcome == Outcome::Missing\n",
        "            && outcome == Outcome::Missing && false\n",
        "--test holding",
        "a_key_that_one_node_lost",
    ),
    on_servers(
        "no-lock-delay",
        "crates/redlock-proto/src/timing.rs",
        "self.ttl.saturating_add(self.lock_delay)",
        "self.ttl",
        "--test holding",
        "a_resource_rests",
    ),
    on_servers(
        "longest-hold-ignored",
        LEASE,
        "self.deadline = earlier(self.deadline.max(deadline), self.ends);",
        "self.deadline = self.deadline.max(deadline);",
        "--test holding",
        "a_lease_ends_after_the_longest_hold",
    ),
    on_servers(
        "hand-over-that-was-turned-off",
        "crates/redlock-core/src/client.rs",
        "tokens: client.settings.hand_overs + 1,",
        "tokens: client.settings.hand_overs + 16,",
        "--test hand_over",
        "without_hand_overs",
    ),
    on_servers(
        "keys-pile-up",
        "crates/redlock-core/src/queue.rs",
        "self.entries.retain(|_, entry| !entry.is_over(now));",
        "let _ = now;",
        "--test growth",
        "l09",
    ),
];

const RUN: &str = "run = string.sub(info, at + 7, string.find(info, '\\r', at, true) - 1)";
const ANY_RUN: &str = "run = '0'";

const fn restart_guard(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    filter: &'static str,
) -> Mutant {
    on_servers(name, file, from, to, "--test restart_guard", filter)
}

const fn on_servers(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    target: &'static str,
    filter: &'static str,
) -> Mutant {
    Mutant {
        name,
        file,
        from,
        to,
        catch: Catch::Test {
            package: "redlock-tests",
            target,
            filter,
        },
    }
}
