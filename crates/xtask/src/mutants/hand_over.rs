//! Mistakes in what callers of one process do with a lease: virtual time shows them.

use super::mutant::{Catch, Mutant};

pub(super) const HAND_OVER: &[Mutant] = &[
    Mutant {
        name: "keeps-the-token",
        file: HAND_OVER_FILE,
        from: "tokens.hand_over()?\n",
        to: "tokens\n",
        catch: QUEUE,
    },
    Mutant {
        name: "to-other-terms",
        file: HAND_OVER_FILE,
        from: "*terms == self.terms && terms",
        to: "terms",
        catch: QUEUE,
    },
    Mutant {
        name: "of-an-expired-lease",
        file: HAND_OVER_FILE,
        from: " && terms.timing.may_hand_out(self.deadline, now)",
        to: " && terms.timing.may_hand_out(self.deadline.max(now + std::time::Duration::from_secs(9)), now)",
        catch: QUEUE,
    },
    Mutant {
        name: "without-end",
        file: "crates/redlock-proto/src/local/queue.rs",
        from: "queue.places.len() > 1 && queue.streak.pause(now).is_none()",
        to: "queue.places.len() > 1 && now >= Instant::ORIGIN",
        catch: QUEUE,
    },
    Mutant {
        name: "renewal-while-nobody-holds",
        file: "crates/redlock-proto/src/lease/mod.rs",
        from: "        if self.is_live() {\n            self.renewal = Renewal::Off;",
        to: "        if false {\n            self.renewal = Renewal::Off;",
        catch: QUEUE,
    },
    Mutant {
        name: "turn-of-a-lost-lease",
        file: "crates/redlock-core/src/lease/mod.rs",
        from: "let_go(validity.kept.take());",
        to: "let_go(None);",
        catch: QUEUE,
    },
];

const HAND_OVER_FILE: &str = "crates/redlock-proto/src/local/hand_over.rs";

const QUEUE: Catch = Catch::Test {
    package: "redlock-core",
    target: "--test paused_time",
    filter: "hand_over",
};
