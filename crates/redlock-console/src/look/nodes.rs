//! The looks at the nodes through a client, which all verbs share: whether each node votes, or why it does not.

use std::time::Duration;

use redlock_core::{NodeAnswer, NodeReport, NotAVote, Redlock};
use serde_json::{Value, json};

use crate::look::{
    clock::{self, millis},
    settings::NodeSettings,
};

/// Looks until each node that can be reached has said where it stands, which takes a moment after it was reached.
pub async fn settled(client: &Redlock, settings: &NodeSettings) -> Vec<NodeReport> {
    let limit = settings.connect_timeout();
    // By best effort, a new server votes from the second look on.
    let votes_now = |report: &NodeReport| ready_in(report) == Some(Duration::ZERO);
    sample_until(client, Duration::from_millis(20), |reports, waited| {
        are_known(reports) && !reports.iter().any(votes_now) || waited > limit
    })
    .await
}

/// Looks again and again until `is_enough`, which is given the reports and the time since the first look.
pub async fn sample_until(
    client: &Redlock,
    every: Duration,
    is_enough: impl Fn(&[NodeReport], Duration) -> bool,
) -> Vec<NodeReport> {
    let begun = clock::now();
    loop {
        let reports = client.node_reports().await;
        if is_enough(&reports, begun.elapsed()) {
            return reports;
        }
        tokio::time::sleep(every).await;
    }
}

/// Returns whether a node votes.
pub fn votes(report: &NodeReport) -> bool {
    report.answer == NodeAnswer::Reachable
}

/// Returns how many nodes vote.
pub fn voting(reports: &[NodeReport]) -> usize {
    reports.iter().filter(|report| votes(report)).count()
}

/// Returns whether a majority of the nodes votes.
pub fn have_quorum(reports: &[NodeReport]) -> bool {
    voting(reports) > reports.len() / 2
}

/// Returns whether each node has said where it stands.
pub fn are_known(reports: &[NodeReport]) -> bool {
    !reports.iter().any(is_open)
}

/// Returns whether a node has not said yet where it stands.
pub fn is_open(report: &NodeReport) -> bool {
    let reason = NotAVote::Unexamined;
    report.answer == NodeAnswer::NotAVote { reason } || report.answer == NodeAnswer::Pending
}

/// Returns after how long a node votes, if it is only quarantined.
pub fn ready_in(report: &NodeReport) -> Option<Duration> {
    match &report.answer {
        NodeAnswer::NotAVote { reason } => reason.ready_in(),
        _ => None,
    }
}

/// Returns where a node stands, in words.
pub fn words(report: &NodeReport) -> String {
    match &report.answer {
        // Nothing was to be executed.
        NodeAnswer::NotExecuted { reason } => format!("cannot be reached: {reason}"),
        answer => answer.to_string(),
    }
}

/// Returns why a node does not vote; `None` if it votes.
pub fn why_not(report: &NodeReport) -> Option<String> {
    (!votes(report)).then(|| words(report))
}

/// Returns a node's name, with the address of its server at this moment if others name it.
pub fn name(report: &NodeReport) -> String {
    name_at(&report.node, report.server())
}

/// Returns a node's name, with the address of the server that others name for it, if any.
pub fn name_at(node: &str, server: Option<&str>) -> String {
    match server {
        Some(server) => format!("{node} ({server})"),
        None => node.to_owned(),
    }
}

/// Returns where a node stands, in a line.
pub fn line(report: &NodeReport) -> String {
    format!("{}: {}", name(report), words(report))
}

/// Returns where a node stands, for programs.
pub fn standing(report: &NodeReport) -> Value {
    json!({
        "node": &*report.node,
        // Its address at this moment, if Sentinels or a Cluster name it.
        "server": report.server(),
        "votes": votes(report),
        "why": why_not(report),
        // If it is only quarantined.
        "ready_in_ms": ready_in(report).map(millis),
    })
}

/// Returns a line for each node, to be put behind a message.
pub fn lines(reports: &[NodeReport]) -> String {
    let lines = reports.iter().map(line);
    lines.map(|line| format!("\n  {line}")).collect()
}
