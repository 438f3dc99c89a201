//! The client's decision about a node: it votes, or why it does not.

use redlock_core::{NodeAnswer, NodeReport, NotAVote, Unfit};

use super::finding::{Findings, Level};
use crate::output::rounded;

/// Adds what keeps nodes from voting; returns how many vote.
pub(super) fn check(reports: &[NodeReport], findings: &mut Findings) -> usize {
    for NodeReport { node, answer, .. } in reports {
        match answer {
            NodeAnswer::NotAVote {
                reason: NotAVote::Quarantined { ready_in },
            } => findings.at(
                node,
                Level::Warning,
                "quarantine",
                format!(
                    "may have forgotten leases, and votes in {} at the earliest",
                    rounded(*ready_in)
                ),
                "wait, while a client of the namespace is connected: redlock watch is one; if nothing can have been forgotten, redlock bless",
            ),
            NodeAnswer::NotAVote {
                reason: reason @ NotAVote::Alone,
            } => findings.at(
                node,
                Level::Note,
                "clock",
                reason.to_string(),
                "see to the other nodes first",
            ),
            NodeAnswer::NotAVote { reason } => {
                let (found, advice) = split(&reason.to_string());
                findings.at(node, Level::Failure, name(reason), found, advice);
            }
            NodeAnswer::Failing { reason } => {
                let (found, advice) = split(reason);
                findings.at(node, Level::Failure, "writes", found, advice);
            }
            NodeAnswer::Unknown { reason } | NodeAnswer::NotExecuted { reason } => {
                let (found, advice) = split(reason);
                findings.at(node, Level::Failure, "reachable", found, advice);
            }
            _ => {}
        }
    }
    let votes = |report: &&NodeReport| report.answer == NodeAnswer::Reachable;
    reports.iter().filter(votes).count()
}

fn name(reason: &NotAVote) -> &'static str {
    match reason {
        NotAVote::Clock => "clock",
        NotAVote::SameServer { .. } => "distinct-server",
        NotAVote::PolicyMismatch { .. } => "policy",
        NotAVote::Unfit(Unfit::Replica) => "role",
        NotAVote::Unfit(Unfit::HasReplicas) => "replicas",
        NotAVote::Unfit(Unfit::Cluster) => "cluster",
        NotAVote::Unfit(Unfit::Evicts { .. }) => "eviction",
        NotAVote::Unfit(Unfit::TooOld { .. }) => "version",
        NotAVote::Unfit(Unfit::NotPersistent | Unfit::SyncsLate { .. }) => "persistence",
        NotAVote::Unexamined => "reachable",
        _ => "votes",
    }
}

/// The library's words say what is wrong, and after a semicolon what to do.
fn split(words: &str) -> (String, String) {
    match words.split_once("; ") {
        Some((found, advice)) => (found.to_owned(), advice.to_owned()),
        None => (
            words.to_owned(),
            "look at its process, its log and its address".to_owned(),
        ),
    }
}
