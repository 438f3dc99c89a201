//! `redlock leader`: the leader of an election, or the holder of any key, as a majority of the nodes knows it.

use std::time::{Duration, SystemTime};

use redlock_core::{Holder, HolderLabel};
use serde_json::json;

use crate::{
    clock::{lasting, millis, moment},
    connection::ConnectionArgs,
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    nodes,
    output::LineMark,
};

/// The arguments of `leader`.
#[derive(clap::Args, Debug)]
pub(crate) struct LeaderArgs {
    /// The name of the election
    name: String,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Prints the leader.
///
/// Ends with 0 if there is one, with 1 if there is none, and with 3 if that cannot be said.
pub(crate) async fn run(args: LeaderArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    settings.key(&args.name)?;
    // A majority decides: a node that hangs must not delay the answer.
    let client = context.client(settings.builder().connect_lazily()).await?;
    let limit = settings.connect_timeout();
    let enough = |reports: &[_], waited| {
        nodes::have_quorum(reports) || nodes::are_known(reports) || waited > limit
    };
    let reports = nodes::sample_until(&client, Duration::from_millis(5), enough).await;
    let holder = client.holder(&*args.name).await?;
    let may_vote = |report: &&_| nodes::votes(report) || nodes::ready_in(report).is_some();
    let can_be_asked = 2 * reports.iter().filter(may_vote).count() > reports.len();
    if holder == Holder::Unknown && !can_be_asked {
        let lines: String = reports
            .iter()
            .map(|report| format!("\n  {}", nodes::line(report)))
            .collect();
        return Err(CommandError::NoQuorum(format!(
            "too few nodes can be asked{lines}"
        )));
    }
    let output = context.output;
    let (state, exit) = match holder {
        Holder::Held { .. } => ("held", Exit::Yes),
        Holder::Free => ("free", Exit::No),
        Holder::Unknown => ("unknown", Exit::NoQuorum),
    };
    let (label, since, remaining) = match holder {
        Holder::Held {
            label,
            since,
            remaining,
            ..
        } => (label, since.and_then(since_1970), remaining),
        _ => (None, None, None),
    };
    let label = label.as_ref().map(HolderLabel::as_str);
    if output.is_json() {
        output.json(&json!({
            "state": state,
            "leader": label,
            // Since 1970, by the leader's clock.
            "since_ms": since.map(millis),
            "remaining_ms": remaining.map(millis),
        }))?;
        return Ok(exit);
    }
    output.line(&match holder {
        Holder::Held { .. } => {
            let label = label.unwrap_or("a holder without a label");
            let since = since.map(|since| format!(" since {}", moment(since)));
            let (since, left) = (since.unwrap_or_default(), lasting(remaining));
            format!("{label} leads{since}, {left} unless renewed")
        }
        Holder::Free => "no leader: no majority of the nodes has the key".to_owned(),
        Holder::Unknown => {
            "unknown: no majority of nodes that vote has the key for one candidate, or is without it".to_owned()
        }
    })?;
    if holder == Holder::Unknown {
        let reports = client.node_reports().await;
        for report in reports.iter().filter(|report| !report.answer.votes()) {
            output.marked(LineMark::Warning, &nodes::line(report))?;
        }
    }
    Ok(exit)
}

fn since_1970(time: SystemTime) -> Option<Duration> {
    time.duration_since(SystemTime::UNIX_EPOCH).ok()
}
