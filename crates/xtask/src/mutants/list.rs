//! The mutants: what is changed, and what must notice.

use std::fmt;

/// A mistake, and what must notice it.
#[derive(Debug)]
pub(super) struct Mutant {
    pub(super) name: &'static str,
    /// The file, from the root of the repository.
    pub(super) file: &'static str,
    /// What is replaced, which is there once.
    pub(super) from: &'static str,
    /// By what.
    pub(super) to: &'static str,
    pub(super) catch: Catch,
}

/// What must fail.
#[derive(Clone, Copy, Debug)]
pub(super) enum Catch {
    /// The simulation of the protocol, within so many seeds.
    Simulation { seeds: u32, plan: &'static str },
    /// The exhaustive model, with this mutation of its own.
    Model(&'static str),
    /// A test: the package, its target as cargo names it, and a part of the test's name.
    Test {
        package: &'static str,
        target: &'static str,
        filter: &'static str,
    },
}

impl fmt::Display for Catch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulation { plan, .. } => write!(f, "the simulation (plan {plan})"),
            Self::Model(mutation) => write!(f, "the model ({mutation})"),
            Self::Test {
                package,
                target,
                filter,
            } => write!(f, "test {filter} of {package} ({target})"),
        }
    }
}

const SIMULATION: Catch = Catch::Simulation {
    seeds: 20_000,
    plan: "default",
};

/// Mutations of the model itself, which stand for rules that no function of the protocol holds alone.
pub(super) const MODEL: &[&str] = &[];

const HAND_OVER: Catch = Catch::Test {
    package: "redlock-core",
    target: "--test paused_time",
    filter: "hand_over",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "quorum-off-by-one",
        file: "crates/redlock-proto/src/quorum.rs",
        from: "self.nodes.get() / 2 + 1",
        to: "self.nodes.get().div_ceil(2)",
        catch: SIMULATION,
    },
    Mutant {
        name: "hand-over-keeps-the-token",
        file: "crates/redlock-core/src/engine/holding.rs",
        from: "unlimited.then(|| self.tokens.hand_over())?",
        to: "unlimited.then_some(self.tokens)",
        catch: HAND_OVER,
    },
    Mutant {
        name: "hand-over-to-other-terms",
        file: "crates/redlock-core/src/engine/holding.rs",
        from: "if terms != self.terms || !terms",
        to: "if !terms",
        catch: HAND_OVER,
    },
    Mutant {
        name: "hand-over-of-an-expired-lease",
        file: "crates/redlock-core/src/engine/holding.rs",
        from: "!terms.timing.may_hand_out(self.deadline, clock.now())",
        to: "false",
        catch: HAND_OVER,
    },
    Mutant {
        name: "hand-over-without-end",
        file: "crates/redlock-core/src/queue.rs",
        from: "entry.interested > 1 && entry.streak.pause(now).is_none()",
        to: "entry.interested > 1",
        catch: HAND_OVER,
    },
    Mutant {
        name: "renewal-while-nobody-holds",
        file: "crates/redlock-proto/src/lease.rs",
        from: "        if self.is_live() {\n            self.renewal = Renewal::Off;",
        to: "        if false {\n            self.renewal = Renewal::Off;",
        catch: HAND_OVER,
    },
];
