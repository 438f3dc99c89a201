//! Votes of nodes, and counters that they have kept.

use std::num::NonZeroUsize;

use super::{super::FanOut, *};
use crate::{Counters, Keyspace, NodeTime, NotAVote, RetryPolicy, Standing};

const HOUR: u64 = 3_600_000_000;
const QUARANTINE: Duration = Duration::from_secs(2);

pub(super) fn three_nodes() -> Nodes {
    let quarantine = Quarantine::new(QUARANTINE, 0.01);
    Nodes::new(&ClientConfig {
        quorum: Quorum::of(NonZeroUsize::new(3).unwrap()),
        keyspace: Keyspace::new("{test}", quarantine),
        retry: RetryPolicy::new(Duration::from_millis(1), Duration::from_millis(1)).unwrap(),
        node_timeout: Duration::from_millis(50),
        inspect_every: ClientConfig::INSPECT_EVERY,
        fan_out: FanOut::All,
        most_unsent: 1,
    })
}

fn tell_server_info(nodes: &mut Nodes, runs: [&str; 3]) {
    for (node, run) in runs.into_iter().enumerate() {
        nodes.on_server_info(node, server_info(run));
    }
}

fn server_info(run: &str) -> ServerInfo {
    ServerInfo {
        run: run.into(),
        version: ServerInfo::OLDEST,
        is_master: true,
        replicas: 0,
        is_cluster: false,
        eviction: None,
        appends: true,
        syncs: None,
    }
}

fn tell_standing(nodes: &mut Nodes, node: usize, run: &str, micros: u64) {
    tell_state(nodes, node, run, micros, MarkState::Voting);
}

fn tell_quarantined(nodes: &mut Nodes, node: usize, run: &str) {
    let state = MarkState::Quarantined {
        ready_in: QUARANTINE,
        since: NodeTime::from_micros(HOUR),
    };
    tell_state(nodes, node, run, HOUR, state);
}

fn tell_state(nodes: &mut Nodes, node: usize, run: &str, micros: u64, state: MarkState) {
    let standing = Standing {
        state,
        time: NodeTime::from_micros(micros),
        run: run.into(),
    };
    nodes.on_standing(
        node,
        standing,
        Instant::ORIGIN,
        Instant::ORIGIN,
        Duration::MAX,
    );
}

/// Nodes 0 and 1 are one server, and node 2 is another, whose clock is an hour ahead.
fn assert_nobody_agrees(nodes: &Nodes) {
    let vote = |node| nodes.vote(node, Instant::ORIGIN);
    assert_eq!(vote(0), Err(NotAVote::Clock));
    assert_eq!(vote(1), Err(NotAVote::SameServer { of: 0 }));
    assert_eq!(nodes.right_time(0, Instant::ORIGIN), None);
}

// Shows: L2.5.
#[test]
fn a_server_that_is_there_twice_does_not_agree_with_itself() {
    let runs = ["a", "a", "b"];
    for facts_first in [true, false] {
        let mut nodes = three_nodes();
        if facts_first {
            tell_server_info(&mut nodes, runs);
        }
        for (node, micros) in [HOUR, HOUR, 2 * HOUR].into_iter().enumerate() {
            tell_standing(&mut nodes, node, runs[node], micros);
        }
        if !facts_first {
            tell_server_info(&mut nodes, runs);
        }
        tell_standing(&mut nodes, 1, "a", HOUR);
        assert_nobody_agrees(&nodes);
    }
}

/// As two votes of a Cluster are whose slots are on one master: each has a mark of its own.
// Shows: L2.5, R7.9.
#[test]
fn of_two_nodes_that_are_one_server_the_one_counts_that_votes() {
    let mut nodes = three_nodes();
    tell_server_info(&mut nodes, ["a", "a", "b"]);
    let vote = |nodes: &Nodes, node| nodes.vote(node, Instant::ORIGIN);
    let shown = |nodes: &Nodes, node| nodes.node_time(node, Instant::ORIGIN).is_some();
    tell_standing(&mut nodes, 2, "b", HOUR);
    tell_quarantined(&mut nodes, 0, "a");
    tell_quarantined(&mut nodes, 1, "a");
    let ready_in = QUARANTINE;
    assert_eq!(vote(&nodes, 0), Err(NotAVote::Quarantined { ready_in }));
    assert_eq!(vote(&nodes, 1), Err(NotAVote::SameServer { of: 0 }));

    // The second begins to vote: by its own answer, or because the client has it vote.
    for is_opened in [false, true] {
        tell_quarantined(&mut nodes, 1, "a");
        if is_opened {
            nodes.on_opened(1);
        }
        tell_standing(&mut nodes, 1, "a", HOUR);
        assert_eq!(vote(&nodes, 1), Ok(()));
        assert_eq!(vote(&nodes, 0), Err(NotAVote::SameServer { of: 1 }));
        assert_eq!(nodes.vote_by_mark(2), Ok(()), "it is another server");
        assert!(!shown(&nodes, 0) && shown(&nodes, 1), "one clock a server");
        tell_quarantined(&mut nodes, 0, "a");
        assert!(!shown(&nodes, 0), "nor when the first answers");
    }

    // If both vote, the first counts.
    tell_standing(&mut nodes, 0, "a", HOUR);
    assert_eq!(vote(&nodes, 0), Ok(()));
    assert_eq!(vote(&nodes, 1), Err(NotAVote::SameServer { of: 0 }));
    assert!(shown(&nodes, 0) && !shown(&nodes, 1), "one clock a server");

    // The client has the first vote before the second answers.
    tell_quarantined(&mut nodes, 0, "a");
    tell_standing(&mut nodes, 1, "a", HOUR);
    nodes.on_opened(0);
    assert!(!shown(&nodes, 1), "one clock a server");
    assert_eq!(vote(&nodes, 1), Err(NotAVote::SameServer { of: 0 }));

    // The connection to the one that votes is lost.
    tell_standing(&mut nodes, 0, "a", HOUR);
    nodes.on_disconnected(0, "cut".into(), Instant::ORIGIN);
    assert_eq!(nodes.vote_by_mark(1), Ok(()));
}

/// A server that comes to answer at the address of another one may leave it again.
#[test]
fn a_node_has_moved_if_it_was_another_server_than_the_one_that_it_is() {
    let mut nodes = three_nodes();
    for runs in [["a", "a", "b"], ["c", "c", "b"]] {
        for node in 0..3 {
            nodes.on_disconnected(node, "cut".into(), Instant::ORIGIN);
        }
        tell_server_info(&mut nodes, runs);
        assert!(!nodes.all().any(|node| nodes.has_moved(node)), "{runs:?}");
    }
    tell_server_info(&mut nodes, ["c", "b", "b"]);
    let moved: Vec<bool> = nodes.all().map(|node| nodes.has_moved(node)).collect();
    assert_eq!(moved, [false, true, true]);
    nodes.on_disconnected(1, "cut".into(), Instant::ORIGIN);
    assert!(!nodes.has_moved(1), "it is no server now");
}

// Shows: L3.4.
#[test]
fn s11_the_counters_of_a_replica_say_nothing() {
    let mut nodes = three_nodes();
    tell_standing(&mut nodes, 0, "a", HOUR);
    assert_eq!(nodes.counters(0), Counters::Unknown, "unexamined");
    tell_server_info(&mut nodes, ["a", "b", "c"]);
    assert_eq!(nodes.counters(0), Counters::Kept);
    let replica = ServerInfo {
        is_master: false,
        ..server_info("a")
    };
    nodes.on_server_info(0, replica);
    assert_eq!(nodes.counters(0), Counters::Unknown);
    assert_eq!(nodes.counters(1), Counters::Unknown, "it says nothing");
}

// Shows: L3.4.
#[test]
fn s22_a_server_that_may_not_vote_has_kept_its_counters_only_if_it_forgets_nothing() {
    let mut nodes = three_nodes();
    tell_standing(&mut nodes, 0, "a", HOUR);
    let with_replicas = ServerInfo {
        replicas: 1,
        ..server_info("a")
    };
    nodes.on_server_info(0, with_replicas);
    assert!(nodes.vote(0, Instant::ORIGIN).is_err());
    assert_eq!(nodes.counters(0), Counters::Kept);
    for replicas in [0, 1] {
        let evicts = ServerInfo {
            replicas,
            eviction: Some("allkeys-lru".into()),
            ..server_info("a")
        };
        nodes.on_server_info(0, evicts);
        assert_eq!(nodes.counters(0), Counters::Lost, "{replicas}");
    }
}

/// It does not vote, whatever it says, for as long as those clients use it.
#[test]
fn a_node_of_clients_that_were_told_otherwise_has_no_counters_to_wait_for() {
    let mut nodes = three_nodes();
    tell_server_info(&mut nodes, ["a", "b", "c"]);
    let standing = Standing {
        state: MarkState::PolicyMismatch {
            theirs: "theirs".into(),
        },
        time: NodeTime::from_micros(HOUR),
        run: "a".into(),
    };
    nodes.on_standing(0, standing, Instant::ORIGIN, Instant::ORIGIN, Duration::MAX);
    assert_eq!(nodes.counters(0), Counters::Lost);
}

/// An address that comes to lead to a server that another address leads to.
#[test]
fn a_server_that_comes_to_be_there_twice_does_not_agree_with_itself() {
    let mut nodes = three_nodes();
    tell_server_info(&mut nodes, ["c", "a", "b"]);
    for (node, (run, micros)) in [("c", HOUR), ("a", HOUR), ("b", 2 * HOUR)]
        .into_iter()
        .enumerate()
    {
        tell_standing(&mut nodes, node, run, micros);
    }
    assert_eq!(nodes.vote(0, Instant::ORIGIN), Ok(()));
    tell_standing(&mut nodes, 0, "a", HOUR);
    tell_server_info(&mut nodes, ["a", "a", "b"]);
    assert_nobody_agrees(&nodes);
}
