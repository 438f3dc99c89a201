//! Mistakes in what a link decides: what it sheds, what it repeats, and what it says of a connection that is lost.

use super::mutant::{Mutant, by_simulation, unit};

pub(super) const LINK: &[Mutant] = &[
    link(
        "releases-of-what-was-sent-are-needless",
        SHED,
        "Verb::Release { .. } | Verb::Bury { .. } if unsent.contains(owner) => Fate::Needless,",
        "Verb::Release { .. } | Verb::Bury { .. } if unsent.len() < usize::MAX => Fate::Needless,",
        1_000,
    ),
    link(
        "what-is-shed-is-told-to-nobody",
        SHED,
        "                    self.fail(op, false, &reason, now);\n",
        "                    drop((op, &reason));\n",
        1_000,
    ),
    unit(
        "a-node-that-lags-is-given-all",
        SHED,
        "        if silence < self.config.lag_after {",
        "        if silence < self.config.give_up_after * 100 {",
        "--lib",
        "link",
    ),
    link(
        "releases-do-not-bury-over-another-connection",
        PENDING,
        "            op.be_for_another_connection();\n",
        "            let _ = &op;\n",
        3_000,
    ),
    unit(
        "requests-for-another-connection-are-sent-as-they-are",
        MACHINE,
        "            if op.connection != self.connections {",
        "            if op.connection > self.connections {",
        "--lib",
        "link",
    ),
    link(
        "a-release-is-not-repeated",
        PENDING,
        "        if op.is_over(now) {\n",
        "        if op.is_over(now) || op.pending_until.is_some() {\n",
        1_000,
    ),
    link(
        "a-release-is-repeated-once",
        PENDING,
        "        op.is_repeated = true;\n        if op.is_over(now) {\n",
        "        let failed_before = std::mem::replace(&mut op.is_repeated, true);\n        if failed_before || op.is_over(now) {\n",
        8_000,
    ),
    link(
        "pending-releases-wait-though-there-is-a-connection",
        PENDING,
        "            self.due = Some(now);\n",
        "            self.due = Some(now + std::time::Duration::from_secs(1));\n",
        1_000,
    ),
    link(
        "what-was-sent-was-not-run",
        MACHINE,
        "                    self.fail(op, true, &reason, now);",
        "                    self.fail(op, false, &reason, now);",
        1_000,
    ),
    link(
        "what-waits-is-overtaken",
        "crates/redlock-proto/src/link/traffic.rs",
        "        self.queue.push_back(op);",
        "        self.queue.push_front(op);",
        1_000,
    ),
    link(
        "a-silent-connection-is-kept",
        MACHINE,
        "                if silence >= self.config.give_up_after {",
        "                if silence >= 1_000 * self.config.give_up_after {",
        1_000,
    ),
];

const MACHINE: &str = "crates/redlock-proto/src/link/mod.rs";
const SHED: &str = "crates/redlock-proto/src/link/shed.rs";
const PENDING: &str = "crates/redlock-proto/src/link/pending.rs";

/// A mistake that the simulated worlds show, within so many seeds.
const fn link(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    seeds: u32,
) -> Mutant {
    by_simulation(name, file, from, to, "default", seeds)
}
