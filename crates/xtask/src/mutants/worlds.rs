//! Mistakes that must show although a world has something to excuse, or only in worlds that have something special.

use super::mutant::{Mutant, by_simulation};

pub(super) const WORLDS: &[Mutant] = &[
    by_simulation(
        "tombs-ignored-while-clocks-are-set",
        "crates/redlock-proto/src/node/store/mod.rs",
        "Request::Lock { .. } | Request::Job { .. } if buried => Ok(Reply::Buried),",
        "Request::Lock { .. } if buried && self.vouched && !self.vouched => Ok(Reply::Buried),",
        "clock-steps",
        5_000,
    ),
    by_simulation(
        "clock-that-jumps-votes",
        "crates/redlock-proto/src/round/votes.rs",
        "own[node] && (agree[node] || readings[node].is_none())",
        "own[node] && (agree[node] || !readings.is_empty())",
        "default",
        5_000,
    ),
    by_simulation(
        "strangers-not-refused",
        "crates/redlock-proto/src/node/store/mark.rs",
        "        if *mark.policy != *policy {",
        "        if *mark.policy != *policy && policy.is_empty() {",
        "strangers",
        10_000,
    ),
    by_simulation(
        "start-after-a-run-that-was-cut-short",
        "crates/redlock-proto/src/client/acquisitions/attempt.rs",
        "if let Some(last) = claim.and_then(Claiming::cut_short) {",
        "if let Some(last) = claim.and_then(Claiming::cut_short).filter(|_| id == u64::MAX) {",
        "ticks",
        1_000,
    ),
    by_simulation(
        "withdrawal-of-a-run-that-is-started",
        "crates/redlock-proto/src/client/acquisitions/settle.rs",
        "            leases.hand_out(id, cx);\n            return leases.follow(id, action, cx, now);",
        "            leases.hand_out(id, cx);\n            leases.withdraw(id, cx, now);\n            return leases.follow(id, action, cx, now);",
        "ticks",
        1_000,
    ),
    by_simulation(
        "longer-leases-of-others-ignored",
        "crates/redlock-proto/src/membership/members.rs",
        "is_none_or(|theirs| theirs > ours)",
        "is_none_or(|theirs| theirs > 9 * ours)",
        "strangers",
        3_000,
    ),
    by_simulation(
        "data-of-another-not-noticed",
        "crates/redlock-proto/src/node/store/mark.rs",
        "        if is_another_run || mark.data != self.data {",
        "        if is_another_run {",
        "default",
        5_000,
    ),
    by_simulation(
        "floor-guessed-of-those-up",
        "crates/redlock-proto/src/client/watch/opening.rs",
        "        let floor = if is_late && cx.config.space.quarantine().guesses_floors() {",
        "        let floor = if is_late {",
        "default",
        5_000,
    ),
    // Data that is set back shows nothing, and each of these must show all the same.
    by_simulation(
        "release-without-compare-while-data-is-set-back",
        "crates/redlock-proto/src/node/store/mod.rs",
        "                if is_owner {\n                    self.keys.remove(key);",
        "                if held.is_some() {\n                    self.keys.remove(key);",
        "rollback",
        5_000,
    ),
];
