//! `redlock watch`: looks at the nodes each second, so that quarantines age, and tells what changes.

mod answers;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use axum::{Router, http::StatusCode};
use redlock_console::Access;
use redlock_core::{NodeAnswer, NodeReport, Redlock};
use serde_json::json;
use tokio::sync::watch::{Sender, channel};

use crate::{
    clock::{self, moment},
    connection::ConnectionArgs,
    console::{Gate, NEEDS_TOKEN, page},
    context::CommandContext,
    exit::{CommandError, CommandResult},
    http,
    nodes::{are_known, have_quorum, is_open, line, name, ready_in, votes, voting, why_not},
    output::{LineMark, Output},
};

/// The arguments of `watch`.
#[derive(clap::Args, Debug)]
pub(crate) struct WatchArgs {
    /// Answers HTTP at this address: /ready/NODE, /metrics for Prometheus, all nodes at /, and the page of redlock
    /// console at /console/, which only shows; a connection has one request, which must be complete within 5 s
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,

    /// A file with the token that opens /console/, which needs one at an address that other machines reach
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Watches until it is interrupted.
pub(crate) async fn run(args: WatchArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    // A client asks for what it measures when it is built.
    let metrics = args.listen.map(|_| answers::measure()).transpose();
    let metrics = metrics.map_err(|error| CommandError::wrong(error.to_string()))?;
    let client = context.client(settings.builder().connect_lazily()).await?;
    let (seen, reports) = channel(Vec::new());
    let looks = watch(&client, &seen, context.output);
    let Some((address, metrics)) = args.listen.zip(metrics) else {
        return looks.await;
    };
    let (listener, address) = http::listen(address).await?;
    let gate = Gate::new(args.token_file.as_deref(), Vec::new())?;
    let page = match gate.is_enough_for(address) {
        true => gate.around("/console", page(client.clone(), Access::Read, &[], &[])?),
        false => {
            Router::new().fallback(async || (StatusCode::FORBIDDEN, format!("{NEEDS_TOKEN}\n")))
        }
    };
    let message = format!("listening at http://{address}");
    context.output.progress(&message);
    tokio::select! {
        watched = looks => watched,
        never = answers::serve(&listener, reports, settings.clone(), metrics, page) => match never {},
    }
}

async fn watch(client: &Redlock, seen: &Sender<Vec<NodeReport>>, output: Output) -> CommandResult {
    let mut had_majority = None;
    loop {
        let reports = client.node_reports().await;
        let before = seen.send_replace(reports.clone());
        for (at, report) in reports.iter().enumerate() {
            let same = before.get(at).is_some_and(|before| is_same(before, report));
            if !same && !is_open(report) {
                tell(report, output)?;
            }
        }
        let (is_known, has_majority) = (are_known(&reports), have_quorum(&reports));
        if is_known && had_majority != Some(has_majority) {
            had_majority = Some(has_majority);
            tell_majority(&reports, output)?;
        }
        let pause = if is_known {
            LOOK_EVERY
        } else {
            LOOK_EVERY / 20
        };
        tokio::time::sleep(pause).await;
    }
}

/// Returns whether nothing has changed but a time.
fn is_same(before: &NodeReport, now: &NodeReport) -> bool {
    let both = |is: &dyn Fn(&NodeReport) -> bool| is(before) && is(now);
    // How long a node has been silent is in its words.
    let is_silent = |report: &NodeReport| matches!(report.answer, NodeAnswer::Unknown { .. });
    let is_another = |(before, now)| before != now;
    let servers = before.server().zip(now.server());
    if servers.is_some_and(is_another) {
        return false;
    }
    before.answer == now.answer || both(&|report| ready_in(report).is_some()) || both(&is_silent)
}

fn tell(report: &NodeReport, output: Output) -> std::io::Result<()> {
    let (node, votes, time) = (&*report.node, votes(report), clock::wall());
    if output.is_json() {
        let why = why_not(report);
        let server = report.server();
        output.json(&json!({
            "at_ms": whole_ms(time),
            "node": node,
            "server": server,
            "votes": votes,
            "why": why,
        }))
    } else if votes {
        let line = format!("{} {} votes", moment(time), name(report));
        output.marked(LineMark::Good, &line)
    } else {
        let line = format!("{} {}", moment(time), line(report));
        output.marked(LineMark::Warning, &line)
    }
}

fn tell_majority(reports: &[NodeReport], output: Output) -> std::io::Result<()> {
    let (voting, nodes, time) = (voting(reports), reports.len(), clock::wall());
    let has_majority = have_quorum(reports);
    let counts = format!("{voting} of {nodes} nodes");
    if output.is_json() {
        return output.json(&json!({
            "at_ms": whole_ms(time),
            "node": null,
            "votes": has_majority,
            "why": (!has_majority).then(|| format!("{counts} vote")),
            "voting": voting,
            "nodes": nodes,
            "majority": nodes / 2 + 1,
        }));
    }
    let time = moment(time);
    if has_majority {
        let line = format!("{time} a majority votes: {counts}");
        output.marked(LineMark::Good, &line)
    } else {
        let line = format!("{time} no quorum: {counts} vote, nothing can be locked");
        output.marked(LineMark::Bad, &line)
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A quarantine ages by a second at most from one look to the next; the client itself looks more often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
