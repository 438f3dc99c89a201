//! Mistakes that show to those who operate the nodes: in errors, reports, the log and the documents.

use super::mutant::{Mutant, by_test, on_servers};

const CLIENT: &str = "crates/redlock-proto/src/client/mod.rs";
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
        "(Link::Up, Ok(())) => self.watches[node].health.standing(),",
        "(Link::Up, Ok(())) => NodeAnswer::Reachable,",
        "--test node_health",
        "a_node_that_wants_replicas",
    ),
    on_servers(
        "refusal-to-write-forgotten-at-the-next-look",
        "crates/redlock-proto/src/client/health.rs",
        "wrote || looked && !trouble.refuses_writes;",
        "{ let _ = trouble; wrote || looked };",
        "--test node_health",
        "a_node_without_memory",
    ),
    on_servers(
        "refusal-to-write-never-over",
        "crates/redlock-proto/src/client/watch.rs",
        "if self.watches[node].health.refuses_writes() {",
        "if false {",
        "--test node_health",
        "a_node_without_memory",
    ),
    on_servers(
        "healthy-nodes-without-an-answer",
        CLIENT,
        "vote if !had_time && self.watches[node].health.is_alive(now.clock) => match vote {",
        "vote if false => match vote {",
        "--test failed_nodes",
        "names_each_dead_node",
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
