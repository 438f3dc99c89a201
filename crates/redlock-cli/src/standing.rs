//! Where the nodes stand, as a client sees them.

use std::time::Duration;

use redlock_core::{BuildErrorKind, NodeAnswer, NodeReport, NotAVote, Redlock};
use serde::Serialize;

use crate::{clock, connection::Settings, context::Context, exit::Failure, output::millis};

/// Where a node stands, for programs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Standing {
    pub(crate) node: String,
    pub(crate) votes: bool,
    /// Why it does not vote.
    pub(crate) why: Option<String>,
    /// After how long it votes, if it is only quarantined.
    pub(crate) ready_in_ms: Option<f64>,
}

impl Standing {
    pub(crate) fn of(report: &NodeReport) -> Self {
        let votes = votes(report);
        Self {
            node: report.node.to_string(),
            votes,
            why: (!votes).then(|| words(&report.answer)),
            ready_in_ms: ready_in(&report.answer).map(millis),
        }
    }
}

/// Connects as a client does, and returns where each node stands.
pub(crate) async fn stand(
    context: &Context,
    settings: &Settings,
) -> Result<(Option<Redlock>, Vec<NodeReport>), Failure> {
    let client = match context.client(settings.builder()).await {
        Ok(client) => client,
        Err(error) if error.kind() == BuildErrorKind::NoQuorum => {
            return Ok((None, error.reports().to_vec()));
        }
        Err(error) => return Err(error.into()),
    };
    let reports = settled(&client, settings).await;
    Ok((Some(client), reports))
}

/// Returns where each node stands, once each node that can be reached has said it.
pub(crate) async fn settled(client: &Redlock, settings: &Settings) -> Vec<NodeReport> {
    // Nodes say what they are a moment after they were reached.
    let begun = clock::now();
    loop {
        let reports = client.node_reports().await;
        if !reports.iter().any(is_open) || begun.elapsed() > settings.connect_timeout() {
            return reports;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns where a node stands, in words.
pub(crate) fn words(answer: &NodeAnswer) -> String {
    match answer {
        // Nothing was to be executed.
        NodeAnswer::NotExecuted { reason } => format!("cannot be reached: {reason}"),
        answer => answer.to_string(),
    }
}

/// Returns where a node stands, in a line.
pub(crate) fn line(report: &NodeReport) -> String {
    format!("{}: {}", report.node, words(&report.answer))
}

/// Returns whether a node has not said yet where it stands.
pub(crate) fn is_open(report: &NodeReport) -> bool {
    let unexamined = NodeAnswer::NotAVote {
        reason: NotAVote::Unexamined,
    };
    report.answer == unexamined || report.answer == NodeAnswer::Pending
}

/// Returns whether a node votes.
pub(crate) fn votes(report: &NodeReport) -> bool {
    report.answer == NodeAnswer::Reachable
}

/// Returns after how long a node votes, if it is only quarantined.
pub(crate) fn ready_in(answer: &NodeAnswer) -> Option<Duration> {
    match answer {
        NodeAnswer::NotAVote { reason } => reason.ready_in(),
        _ => None,
    }
}
