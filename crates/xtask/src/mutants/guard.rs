//! Mistakes about which servers, data, clocks and counters a vote rests on.

use super::mutant::{Mutant, unit};

const CLOCKS: &str = "crates/redlock-proto/src/membership/clocks.rs";
const ELECTORATE: &str = "crates/redlock-proto/src/membership/members.rs";
const HOLD: &str = "crates/redlock-proto/src/client/leases/held.rs";
const MARK: &str = "crates/redlock-proto/src/node/store/mark.rs";
const VOTES: &str = "crates/redlock-proto/src/round/votes.rs";
const WATCH: &str = "crates/redlock-proto/src/client/watch/opening.rs";

pub(super) const GUARD: &[Mutant] = &[
    unit(
        "data-of-another-votes",
        MARK,
        "if is_another_run || mark.data != self.data {",
        "if is_another_run {",
        "--lib",
        "s16_a_node_that_has_anothers_data",
    ),
    unit(
        "persistence-trusted-for-anothers-data",
        MARK,
        "if !(is_another_run && quarantine.trusts_persistence()) {",
        "if !quarantine.trusts_persistence() {",
        "--lib",
        "s16_a_node_that_has_anothers_data",
    ),
    unit(
        "clock-rate-error-not-compared",
        "crates/redlock-proto/src/node/quarantine.rs",
        "{rate_error}ppm{trusts},v{VERSION}\")",
        "{}ppm{trusts},v{VERSION}\", rate_error * 0)",
        "--lib",
        "another_clock_rate_error",
    ),
    clients(
        "votes-counted-by-any-clock",
        VOTES,
        "own[node] && (agree[node] || readings[node].is_none())",
        "own[node] && (agree[node] || !readings.is_empty())",
        "s14_votes_count_only",
    ),
    unit(
        "two-grants-of-one-server-counted",
        VOTES,
        "granted(node) && !is_twin(node)",
        "granted(node) && (!is_twin(node) || node < 9)",
        "--lib",
        "s11_two_grants_of_one_server",
    ),
    unit(
        "old-readings-count",
        CLOCKS,
        "(age <= Self::LONGEST_AGE).then",
        "(age <= Self::LONGEST_AGE * 1_000).then",
        "--lib",
        "s14_readings_that_are_old",
    ),
    clients(
        "standstill-not-noticed",
        "crates/redlock-proto/src/client/nodes/mod.rs",
        "        self.members.jumped() > before\n",
        "        self.members.jumped() < before\n",
        "own_clock_stood_still_loses_its_leases",
    ),
    clients(
        "standstill-in-an-attempt-not-noticed",
        HOLD,
        "        let _ = self.look_at_clocks(jumped);\n",
        "        let _ = jumped;\n",
        "stood_still_in_an_attempt",
    ),
    clients(
        "drift-taken-for-a-standstill",
        "crates/redlock-proto/src/lease/mod.rs",
        "jumped > self.timing.drift()",
        "jumped > self.timing.drift() / 9",
        "what_the_drift_allows_for",
    ),
    clients(
        "split-votes-kept",
        "crates/redlock-proto/src/round/attempt.rs",
        "is_split.then(|| now",
        "(is_split && self.decided).then(|| now",
        "l08_an_attempt_that_splits",
    ),
    clients(
        "floor-guessed",
        WATCH,
        "if is_late && cx.config.space.quarantine().guesses_floors() {",
        "if is_late {",
        "waits_for_a_majority_that_has_not",
    ),
    clients(
        "clock-stands-in-at-once",
        WATCH,
        "is_late || survey.has_read_all()",
        "is_late || survey.has_read(node)",
        "away_for_a_moment_is_read",
    ),
    clients(
        "seen-counters-not-in-the-floor",
        "crates/redlock-proto/src/client/tokens.rs",
        "        floor.max(seen)\n",
        "        floor.max(seen.min(1))\n",
        "brings_them_into_the_floor",
    ),
    clients(
        "blessing-tells-of-no-degraded-floor",
        WATCH,
        "_ => stand_in(survey.greatest(), *node, survey, cx, now),",
        "_ => cx.tokens.at_least_seen(survey.greatest()).max(now.wall),",
        "a_blessing_says",
    ),
    clients(
        "longer-policy-forgotten",
        ELECTORATE,
        "is_none_or(|theirs| theirs > ours)",
        "is_none_or(|theirs| theirs > 100 * ours)",
        "a_shorter_max_ttl_wins_nothing",
    ),
];

const fn clients(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    filter: &'static str,
) -> Mutant {
    unit(name, file, from, to, "--test clients", filter)
}
