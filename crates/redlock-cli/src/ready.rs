//! `redlock ready`: whether one node votes, as a probe of containers asks.

use std::{sync::Arc, time::Duration};

use redlock_core::{NodeAnswer, NodeConfig, NodeReport, NotAVote};

use crate::{
    clock::duration,
    connection::{ConnectionArgs, NodeSettings},
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    nodes::{is_open, line, name, sample_until, standing, votes},
};

/// The arguments of `ready`.
#[derive(clap::Args, Debug)]
pub(crate) struct ReadyArgs {
    /// The node: its address, such as 10.0.0.1:6379, its URL, its host, or its place among the nodes from 1
    node: String,

    /// Waits up to this time for the node to vote
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Ends with 0 if a node votes in this namespace, and else says why not, and for how long.
pub(crate) async fn run(args: ReadyArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let node = find(&settings, &args.node)?;
    let client = context.client(settings.builder().connect_lazily()).await?;
    let connecting = settings.connect_timeout() + settings.node_timeout();
    let mut reports = sample_until(&client, LOOK_EVERY, |reports, waited| {
        // What a node says before there is a connection is no answer, however short the wait is.
        let has_answered = waited >= connecting || !may_change_soon(&reports[node]);
        let is_over = has_answered && args.wait.is_none_or(|longest| waited >= longest);
        votes(&reports[node]) || is_over
    })
    .await;
    let report = reports.swap_remove(node);
    let is_ready = votes(&report);
    let output = context.output;
    if output.is_json() {
        output.json(&standing(&report))?;
    } else if is_ready {
        output.line(&format!("{} votes", name(&report)))?;
    } else {
        output.line(&line(&report))?;
    }
    Ok(if is_ready { Exit::Yes } else { Exit::No })
}

/// Returns a node's place among the nodes.
pub(crate) fn find(settings: &NodeSettings, wanted: &str) -> Result<usize, CommandError> {
    let nodes = &settings.config.nodes;
    let names: Vec<Arc<str>> = nodes.iter().filter_map(|node| node.name()).collect();
    if let Ok(place @ 1..) = wanted.parse::<usize>()
        && place <= nodes.len()
    {
        return Ok(place - 1);
    }
    // As REDLOCK_NODES has it; what is said of it shows no password.
    let url = wanted
        .contains("://")
        .then(|| NodeConfig::from(wanted).name());
    let named = url.flatten();
    let wanted = named.as_deref().unwrap_or(wanted);
    let port = wanted.strip_prefix("localhost");
    // And not a name that only begins so.
    let port = port.filter(|rest| rest.is_empty() || rest.starts_with(':'));
    let wanted = port.map_or_else(|| wanted.to_owned(), |port| format!("127.0.0.1{port}"));
    let is_host = |name: &Arc<str>| {
        name.rsplit_once(':')
            .is_some_and(|(host, _)| host == wanted)
    };
    let mut found = (0..names.len()).filter(|at| *names[*at] == *wanted || is_host(&names[*at]));
    match (found.next(), found.next()) {
        (Some(node), None) => Ok(node),
        (None, _) => Err(CommandError::wrong(format!(
            "none of the nodes is that: they are {}",
            names.join(", ")
        ))),
        (Some(_), Some(_)) => Err(CommandError::wrong(
            "several nodes are on that host: give the port too",
        )),
    }
}

/// Returns whether a node has said too little yet, as in the first moments of a connection.
fn may_change_soon(report: &NodeReport) -> bool {
    let alone = NodeAnswer::NotAVote {
        reason: NotAVote::Alone,
    };
    is_open(report)
        || report.answer == alone
        || matches!(
            report.answer,
            NodeAnswer::Unknown { .. } | NodeAnswer::NotExecuted { .. }
        )
}

const LOOK_EVERY: Duration = Duration::from_millis(50);
