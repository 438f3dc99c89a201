//! Mistakes that show to those who operate the nodes: in errors, reports, the log and the documents.

use super::mutant::{Mutant, by_test, on_servers};

const CLIENT: &str = "crates/redlock-proto/src/client/nodes/mod.rs";
const NEWS: &str = "crates/redlock-proto/src/client/nodes/news.rs";
const WORDS: &str = "crates/redlock-core/src/node/redis/words.rs";

pub(super) const OPERATION: &[Mutant] = &[
    on_servers(
        "words-of-a-server-passed-on",
        WORDS,
        "None => say(\"an error whose words may be those of a request\", \", \"),",
        "None => say(rest, \", \"),",
        "--test repeated_arguments",
        "an_answer_that_repeats",
    ),
    on_servers(
        "unknown-code-passed-on",
        WORDS,
        "CODES.iter().find(|known| **known == code).copied();",
        "Some(code);",
        "--test repeated_arguments",
        "an_answer_that_repeats",
    ),
    wrong_server(
        "nobody-looks-what-answers",
        "crates/redlock-core/src/node/redis/mod.rs",
        "Some(probe) => probe.finding().await,",
        "Some(probe) => { let _ = probe; None }",
        "it_takes_is_told",
    ),
    wrong_server(
        "nobody-looks-what-keeps-silent",
        "crates/redlock-core/src/node/redis/mod.rs",
        "Either::Right((Some(finding), _)) => return Err(finding),",
        "Either::Right((Some(_), opening)) => opening.await,",
        "a_port_without_tls",
    ),
    wrong_server(
        "loopback-addresses-are-one",
        "crates/redlock-core/src/node/redis/address.rs",
        "\"localhost\" =>",
        "\"localhost\" | \"::1\" =>",
        "the_two_loopback",
    ),
    on_servers(
        "failing-node-called-reachable",
        CLIENT,
        "(State::Up, Ok(())) => self.health[node].standing(),",
        "(State::Up, Ok(())) => NodeAnswer::Reachable,",
        "--test node_health",
        "a_node_that_wants_replicas",
    ),
    on_servers(
        "refusal-to-write-forgotten-at-the-next-look",
        "crates/redlock-proto/src/client/nodes/health.rs",
        "wrote || looked && !trouble.refuses_writes;",
        "{ let _ = trouble; wrote || looked };",
        "--test node_health",
        "a_node_without_memory",
    ),
    on_servers(
        "refusal-to-write-never-over",
        "crates/redlock-proto/src/client/watch/mod.rs",
        "if cx.nodes.refuses_writes(node) {",
        "if false {",
        "--test node_health",
        "a_node_without_memory",
    ),
    on_servers(
        "healthy-nodes-without-an-answer",
        CLIENT,
        "_ if !had_time && self.health[node].is_alive(now.clock) => self.stands(node, now),",
        "_ if false && !had_time => self.stands(node, now),",
        "--test failed_nodes",
        "names_each_dead_node",
    ),
    on_servers(
        "nodes-alone-for-a-moment-warned-of",
        NEWS,
        "(_, Err(NotAVote::Alone)) | (None | Some(Ok(())), Ok(())) => false,",
        "(None | Some(Ok(())), Ok(())) => false,",
        "--test log_of_a_healthy_start",
        "a_healthy_start",
    ),
    on_servers(
        "majority-judged-before-all-are-known",
        CLIENT,
        "if !self.connections.iter().all(Connection::is_settled) {",
        "if !self.connections.iter().any(Connection::is_settled) {",
        "--test log_of_a_healthy_start",
        "a_healthy_start",
    ),
    on_servers(
        "majority-at-risk-not-told",
        NEWS,
        "Some(0) if quorum.tolerated() > 0 => Level::AtRisk,",
        "Some(0) if quorum.tolerated() > 99 => Level::AtRisk,",
        "--test log_lines",
        "each_change",
    ),
    on_servers(
        "quarantine-looked-at-as-seldom-as-a-vote",
        "crates/redlock-proto/src/client/watch/mod.rs",
        "Some(MarkState::Quarantined { .. } | MarkState::Aged { .. }) => {\n                cx.config.space.quarantine().step() / 2\n",
        "Some(MarkState::Quarantined { .. } | MarkState::Aged { .. }) => {\n                INSPECT_EVERY\n",
        "--test ageing",
        "an_idle_client",
    ),
    by_test(
        "danger-told-late",
        "crates/redlock-core/src/lease/mod.rs",
        "self.remaining().saturating_sub(self.subject.ttl / 3)",
        "self.remaining().saturating_sub(self.subject.ttl / 4)",
        "redlock-core",
        "--lib",
        "danger_is_told",
    ),
    by_test(
        "danger-of-a-lease-that-was-renewed",
        "crates/redlock-proto/src/lease/mod.rs",
        "                self.danger = Some(danger(self.timing, start, self.deadline));\n",
        "",
        "redlock-proto",
        "--lib",
        "an_operator_is_warned",
    ),
];

/// A mistake about what answers at an address.
const fn wrong_server(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    filter: &'static str,
) -> Mutant {
    let target = "--test wrong_servers";
    by_test(name, file, from, to, "redlock-core", target, filter)
}
