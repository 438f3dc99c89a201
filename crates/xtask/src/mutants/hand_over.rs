//! Mistakes in what callers of one process do with a lease: virtual time shows them.

use super::mutant::{Catch, Mutant};

pub(super) const HAND_OVER: &[Mutant] = &[
    Mutant {
        name: "keeps-the-token",
        file: "crates/redlock-core/src/engine/holding.rs",
        from: "unlimited.then(|| self.tokens.hand_over())?",
        to: "unlimited.then_some(self.tokens)",
        catch: QUEUE,
    },
    Mutant {
        name: "to-other-terms",
        file: "crates/redlock-core/src/engine/holding.rs",
        from: "if terms != self.terms || !terms",
        to: "if !terms",
        catch: QUEUE,
    },
    Mutant {
        name: "of-an-expired-lease",
        file: "crates/redlock-core/src/engine/holding.rs",
        from: "!terms.timing.may_hand_out(self.deadline, clock.now())",
        to: "false",
        catch: QUEUE,
    },
    Mutant {
        name: "without-end",
        file: "crates/redlock-core/src/queue.rs",
        from: "entry.interested > 1 && entry.streak.pause(now).is_none()",
        to: "entry.interested > 1",
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
        file: "crates/redlock-core/src/lease.rs",
        from: "drop(validity.turn.take());",
        to: "drop(None::<Turn>);",
        catch: QUEUE,
    },
];

const QUEUE: Catch = Catch::Test {
    package: "redlock-core",
    target: "--test paused_time",
    filter: "hand_over",
};
