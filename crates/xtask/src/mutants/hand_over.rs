//! Mistakes in what callers of one process do with their turns and with a lease: the simulated worlds show them, and
//! so does virtual time.

use super::mutant::{Mutant, by_simulation, by_test};

pub(super) const HAND_OVER: &[Mutant] = &[
    local(
        "keeps-the-token",
        LEASE,
        "tokens.hand_over()?\n",
        "tokens\n",
    ),
    local(
        "to-other-terms",
        LEASE,
        "*terms == self.terms && terms",
        "terms",
    ),
    local(
        "of-an-expired-lease",
        LEASE,
        " && terms.timing.may_hand_out(self.deadline, now)",
        " && now >= Instant::ORIGIN",
    ),
    local(
        "without-end",
        QUEUE,
        "queue.places.len() > 1 && queue.streak.pause(now).is_none()",
        "queue.places.len() > 1 && now >= Instant::ORIGIN",
    ),
    local(
        "to-nobody",
        QUEUE,
        "left.unclaimed = queue.parked.take();",
        "left.unclaimed = None;",
    ),
    local(
        "out-of-order",
        QUEUE,
        "            queue.places.push_back(ticket);",
        "            let behind = queue.places.len().min(1);\n            queue.places.insert(behind, ticket);",
    ),
    local(
        "two-turns-at-once",
        QUEUE,
        "queue.is_some_and(|queue| queue.places.front() == Some(&ticket))",
        "queue.is_some_and(|queue| queue.places.contains(&ticket))",
    ),
    local(
        "nobody-is-next",
        QUEUE,
        "            left.next = queue.places.front().copied();",
        "            left.next = None;",
    ),
    local(
        "renewal-while-nobody-holds",
        "crates/redlock-proto/src/lease/mod.rs",
        "        if self.is_live() {\n            self.renewal = Renewal::Off;",
        "        if false {\n            self.renewal = Renewal::Off;",
    ),
    by_test(
        "turn-of-a-lost-lease",
        "crates/redlock-core/src/lease/mod.rs",
        "let_go(validity.kept.take());",
        "let_go(None);",
        "redlock-core",
        "--test paused_time",
        "hand_over",
    ),
];

const LEASE: &str = "crates/redlock-proto/src/local/hand_over.rs";
const QUEUE: &str = "crates/redlock-proto/src/local/queue.rs";

/// A mistake in what the protocol decides about the callers of one process.
const fn local(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutant {
    by_simulation(name, file, from, to, "default", 500)
}
