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
pub(super) const MODEL: &[&str] = &[
    "no-write-back",
    "write-back-without-key",
    "write-back-uncounted",
    "no-seed",
    "seed-early",
    "minimum-token",
    "quarantined-votes",
    "degraded-floor",
    "floor-unread",
];

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
        name: "no-drift",
        file: "crates/redlock-proto/src/timing.rs",
        from: "start + (self.ttl - self.drift)",
        to: "start + self.ttl",
        catch: SIMULATION,
    },
    Mutant {
        name: "validity-from-the-reply",
        file: "crates/redlock-proto/src/attempt.rs",
        from: "let deadline = self.timing.deadline(self.start);",
        to: "let deadline = self.timing.deadline(now);",
        catch: SIMULATION,
    },
    Mutant {
        name: "extension-from-the-reply",
        file: "crates/redlock-proto/src/extension.rs",
        from: "let deadline = self.timing.deadline(self.start);",
        to: "let deadline = self.timing.deadline(now);",
        catch: SIMULATION,
    },
    Mutant {
        name: "extension-without-a-majority",
        file: "crates/redlock-proto/src/extension.rs",
        from: "let verdict = if self.votes.is_won() {",
        to: "let verdict = if self.votes.granted() > 0 {",
        catch: SIMULATION,
    },
    Mutant {
        name: "extension-after-the-deadline",
        file: "crates/redlock-proto/src/extension.rs",
        from: "if now < self.valid_until && now < deadline {",
        to: "if now < deadline {",
        catch: Catch::Test {
            package: "redlock-proto",
            target: "--lib",
            filter: "extension",
        },
    },
    Mutant {
        name: "no-release-after-a-failed-acquire",
        file: "crates/redlock-proto/src/client/acquire.rs",
        from: "                self.give_back(&failure, &acquisition.request, owner, now);\n                self.failed(",
        to: "                self.failed(",
        catch: SIMULATION,
    },
    Mutant {
        name: "extension-creates",
        file: "crates/redlock-proto/src/store.rs",
        from: "                if !is_owner {\n                    return Ok(refused);\n                }\n                if let Some((shard, counter)) = write_back",
        to: "                if held.is_some() && !is_owner {\n                    return Ok(refused);\n                }\n                if let Some((shard, counter)) = write_back",
        catch: SIMULATION,
    },
    Mutant {
        name: "failed-extension-deletes",
        file: "crates/redlock-proto/src/client/hold.rs",
        from: "        if verdict == ExtensionVerdict::Failed {\n",
        to: "        if verdict == ExtensionVerdict::Failed {\n            self.release(id, None, now);\n",
        catch: Catch::Test {
            package: "redlock-core",
            target: "--test paused_time",
            filter: "s05",
        },
    },
    Mutant {
        name: "release-without-compare",
        file: "crates/redlock-proto/src/store.rs",
        from: "                if is_owner {\n                    self.keys.remove(key);",
        to: "                if held.is_some() {\n                    self.keys.remove(key);",
        catch: SIMULATION,
    },
    Mutant {
        name: "no-write-back",
        file: "crates/redlock-proto/src/fencing.rs",
        from: "match agreed >= majority {",
        to: "match agreed >= 1 {",
        catch: SIMULATION,
    },
    Mutant {
        name: "smallest-token",
        file: "crates/redlock-proto/src/fencing.rs",
        from: ".map(|(_, counter)| *counter)\n        .max()",
        to: ".map(|(_, counter)| *counter)\n        .min()",
        catch: SIMULATION,
    },
    Mutant {
        name: "counter-not-incremented",
        file: "crates/redlock-proto/src/fencing.rs",
        from: "let least = if stored > floor { stored } else { floor }.saturating_add(1);",
        to: "let least = if stored > floor { stored } else { floor };",
        catch: SIMULATION,
    },
    Mutant {
        name: "wall-clock-only-tokens",
        file: "crates/redlock-proto/src/fencing.rs",
        from: "if proposal > least { proposal } else { least }",
        to: "if proposal > 0 { proposal } else { least }",
        catch: SIMULATION,
    },
    Mutant {
        name: "no-seed",
        file: "crates/redlock-proto/src/client/watch.rs",
        from: "Floor::Known(floor) => floor,",
        to: "Floor::Known(_) => 0,",
        catch: SIMULATION,
    },
    Mutant {
        name: "half-a-quarantine",
        file: "crates/redlock-proto/src/quarantine.rs",
        from: "length: ms(length) + 5,",
        to: "length: ms(length) / 2,",
        catch: SIMULATION,
    },
    Mutant {
        name: "flush-not-noticed",
        file: "crates/redlock-proto/src/store.rs",
        from: "quarantine: (!self.vouched).then_some(begin),",
        to: "quarantine: None,",
        catch: SIMULATION,
    },
    Mutant {
        name: "restart-not-noticed",
        file: "crates/redlock-proto/src/store.rs",
        from: "                mark.quarantine = Some(begin);\n                return",
        to: "                mark.quarantine = None;\n                return",
        catch: SIMULATION,
    },
    Mutant {
        name: "clock-step-ends-the-quarantine",
        file: "crates/redlock-proto/src/store.rs",
        from: "aging.aged += now.saturating_sub(aging.last).min(step);",
        to: "aging.aged += now.saturating_sub(aging.last).max(step.min(0));",
        catch: Catch::Test {
            package: "redlock-proto",
            target: "--lib",
            filter: "s13",
        },
    },
    Mutant {
        name: "another-max-ttl-accepted",
        file: "crates/redlock-proto/src/store.rs",
        from: "if *mark.policy != *policy {",
        to: "if mark.policy.is_empty() {",
        catch: Catch::Test {
            package: "redlock-proto",
            target: "--lib",
            filter: "store",
        },
    },
    Mutant {
        name: "refusal-is-a-vote",
        file: "crates/redlock-proto/src/request.rs",
        from: "            Self::Held { remaining, .. } => Outcome::Refused {\n                remaining: *remaining,\n            },",
        to: "            Self::Held { counter, .. } => Outcome::Granted { counter: *counter },",
        catch: SIMULATION,
    },
    Mutant {
        name: "answer-heard-twice",
        file: "crates/redlock-proto/src/client/round.rs",
        from: "if std::mem::replace(self.heard.get_mut(node)?, true) {",
        to: "if std::mem::replace(self.heard.get_mut(node)?, false) {",
        catch: Catch::Test {
            package: "redlock-proto",
            target: "--test client",
            filter: "twice",
        },
    },
    Mutant {
        name: "late-answer-counted",
        file: "crates/redlock-proto/src/attempt.rs",
        from: "if self.decided || !self.votes.cast(node, outcome) {",
        to: "if !self.votes.cast(node, outcome) {",
        catch: Catch::Test {
            package: "redlock-proto",
            target: "--lib",
            filter: "attempt",
        },
    },
    Mutant {
        name: "owner-used-again",
        file: "crates/redlock-proto/src/client/acquire.rs",
        from: "let owner = self.entropy.owner();",
        to: "let owner = OwnerId::from_random([7; 16]);",
        catch: SIMULATION,
    },
    Mutant {
        name: "tombs-ignored",
        file: "crates/redlock-proto/src/store.rs",
        from: "Request::Lock { .. } if buried => Ok(Reply::Buried),",
        to: "Request::Lock { .. } if buried && self.vouched && !self.vouched => Ok(Reply::Buried),",
        catch: SIMULATION,
    },
    Mutant {
        name: "release-over-another-connection",
        file: "crates/redlock-proto/src/request.rs",
        from: "            } => Self::Lock {\n                verb: Verb::Bury { ttl },",
        to: "            } => Self::Lock {\n                verb: Verb::Release { ttl },",
        catch: Catch::Test {
            package: "redlock-sim",
            target: "--test kit",
            filter: "s28",
        },
    },
    Mutant {
        name: "healing-without-a-majority",
        file: "crates/redlock-proto/src/lease.rs",
        from: "            && matches!(verdict, ExtensionVerdict::Extended { .. })\n            && outcome",
        to: "            && !matches!(verdict, ExtensionVerdict::Revoked)\n            && outcome",
        catch: SIMULATION,
    },
    Mutant {
        name: "loss-only-without-renewal",
        file: "crates/redlock-proto/src/lease.rs",
        from: "        if now >= self.deadline {",
        to: "        if now >= self.deadline && self.renewal == Renewal::Off {",
        catch: Catch::Test {
            package: "redlock-proto",
            target: "--lib",
            filter: "s06",
        },
    },
    Mutant {
        name: "lock-delay-ignored",
        file: "crates/redlock-proto/src/timing.rs",
        from: "self.ttl.saturating_add(self.lock_delay)",
        to: "self.ttl.saturating_add(self.lock_delay.saturating_sub(self.lock_delay))",
        catch: SIMULATION,
    },
    Mutant {
        name: "wrong-clock-votes",
        file: "crates/redlock-proto/src/clocks.rs",
        from: "size(start) >= self.quorum.majority() && within(start, own.ahead(now))",
        to: "size(start) >= self.quorum.majority() && own.ahead(now).0 <= own.ahead(now).1",
        catch: Catch::Test {
            package: "redlock-proto",
            target: "--lib",
            filter: "s14",
        },
    },
    Mutant {
        name: "same-server-votes-twice",
        file: "crates/redlock-proto/src/electorate.rs",
        from: "if let Some(of) = self.same_server(node) {",
        to: "if let Some(of) = self.same_server(node).filter(|of| *of > node) {",
        catch: Catch::Test {
            package: "redlock-tests",
            target: "--test node_checks",
            filter: "s11",
        },
    },
    Mutant {
        name: "search-without-pause",
        file: "crates/redlock-proto/src/client/watch.rs",
        from: "watch.survey_after = now.clock + pause;",
        to: "watch.survey_after = now.clock + pause - pause;",
        catch: Catch::Test {
            package: "redlock-proto",
            target: "--test client",
            filter: "l08",
        },
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
