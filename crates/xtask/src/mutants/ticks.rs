//! Mistakes about ticks that show where clocks are set, where somebody asks for the status of jobs, and in the model of
//! claims.

use super::mutant::{Catch, Mutant, by_simulation, by_test};

const COMMIT: &str = "crates/redlock-proto/src/client/leases/commit.rs";
const STATUS: &str = "crates/redlock-proto/src/client/job_state.rs";
const JOBS: &str = "crates/redlock-proto/src/node/store/jobs.rs";

pub(super) const TICKS: &[Mutant] = &[
    world(
        "horizon-of-the-telling",
        "crates/redlock-proto/src/node/store/mod.rs",
        HEARS_A_NODE_VERB,
        TAKES_ITS_OWN_TIME,
    ),
    world(
        "horizon-of-the-quarantine",
        "crates/redlock-proto/src/client/watch/opening.rs",
        "            horizon: Some(horizon),\n",
        "            horizon: Some(horizon.min(since)),\n",
    ),
    world(
        "claim-overtakes",
        JOBS,
        "            && last.tick >= tick\n",
        "            && last.tick == tick\n",
    ),
    world(
        "record-for-one-node",
        COMMIT,
        "    cx.send_all(round, &request);",
        "    cx.send(0, round, request);",
    ),
    world(
        "dropped-is-unstarted",
        COMMIT,
        "Word::new(RunRecord::DROPPED)",
        "Word::new(RunRecord::UNSTARTED)",
    ),
    world(
        "status-of-the-least-watermark",
        STATUS,
        "self.entries.iter().map(|entry| entry.tick).max()",
        "self.entries.iter().map(|entry| entry.tick).min()",
    ),
    Mutant {
        name: "free-by-one-node",
        file: STATUS,
        from: "free_in: free_in.get(majority - 1)",
        to: "free_in: free_in.get((majority - 1).min(0))",
        catch: Catch::Simulation {
            seeds: 5_000,
            plan: "ticks",
        },
    },
    model(
        "model-watermark-not-kept",
        JOBS,
        "                    self.advance(job, entry);\n",
        "",
    ),
    model(
        "model-horizon-without-early",
        "crates/redlock-proto/src/tick/window.rs",
        "tick.0 <= horizon.saturating_add(self.early)",
        "tick.0 <= horizon",
    ),
];

pub(super) const HEARS_A_NODE_VERB: &str =
    "                    Request::Node(verb) => self.node(space, verb, state.as_ref()),\n";

/// The horizon is what the node's clock shows when it is told to vote.
pub(super) const TAKES_ITS_OWN_TIME: &str = "                    Request::Node(verb) => {
                        let mut verb = *verb;
                        if let NodeVerb::Open { horizon: Some(horizon), .. } = &mut verb {
                            *horizon = time;
                        }
                        self.node(space, &verb, state.as_ref())
                    }
";

/// A mistake that shows where all clocks are set.
const fn world(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutant {
    by_simulation(name, file, from, to, "ticks-clocks", 3_000)
}

/// A mistake in the protocol's model of a node, which the model of claims runs.
const fn model(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutant {
    by_test(
        name,
        file,
        from,
        to,
        "redlock-model",
        "--test ticks",
        "no_tick_starts_twice",
    )
}
