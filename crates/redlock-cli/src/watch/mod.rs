//! `redlock watch`: looks at the nodes each second, so that quarantines age, and tells what changes.

mod connections;
mod exposition;
mod http;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use redlock_core::{NodeReport, Redlock};
use serde::Serialize;
use tokio::net::TcpListener;

use self::exposition::Exposition;
use crate::{
    clock,
    connection::{Connection, Settings},
    context::Context,
    exit::{Exit, Failure},
    output::{Mark, Output, moment},
    policy,
    standing::{is_open, line, ready_in, votes, words},
};

/// The arguments of `watch`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Answers HTTP at this address: /ready/NODE, /metrics for Prometheus, and all nodes at /; a connection has one
    /// request, which must be complete within 5 s
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,

    #[command(flatten)]
    connection: Connection,
}

/// What was seen last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<NodeReport>>>);

impl Seen {
    pub(crate) fn get(&self) -> Vec<NodeReport> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, reports: Vec<NodeReport>) -> Vec<NodeReport> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *seen, reports)
    }
}

/// Watches until it is interrupted.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let settings = policy::settings(&args.connection).await?;
    // A client asks for what it measures when it is built.
    let exposition = args.listen.map(|_| Exposition::begin()).transpose();
    let exposition = exposition.map_err(|error| Failure::wrong(error.to_string()))?;
    let client = context.client(settings.builder().connect_lazily()).await?;
    let seen = Seen::default();
    let looks = watch(&client, &seen, &settings, context.output);
    let Some((address, exposition)) = args.listen.zip(exposition) else {
        return looks.await;
    };
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Failure::wrong(format!("cannot listen at {address}: {error}")))?;
    if let Ok(address) = listener.local_addr() {
        context
            .output
            .progress(&format!("listening at http://{address}"));
    }
    let routes = http::routes(seen.clone(), settings.clone(), exposition.clone());
    tokio::select! {
        watched = looks => watched,
        never = exposition.keep_small() => match never {},
        never = connections::serve(&listener, routes) => match never {},
    }
}

async fn watch(
    client: &Redlock,
    seen: &Seen,
    settings: &Settings,
    output: Output,
) -> Result<Exit, Failure> {
    let mut had_majority = None;
    loop {
        let reports = client.node_reports().await;
        let before = seen.set(reports.clone());
        for (at, report) in reports.iter().enumerate() {
            let same = before.get(at).is_some_and(|before| is_same(before, report));
            if !same && !is_open(report) {
                tell(report, output)?;
            }
        }
        let is_known = !reports.iter().any(is_open);
        let count = reports.iter().filter(|report| votes(report)).count();
        let has_majority = count >= settings.majority();
        if is_known && had_majority != Some(has_majority) {
            had_majority = Some(has_majority);
            let counts = Counts {
                voting: count,
                nodes: reports.len(),
                majority: settings.majority(),
            };
            majority(has_majority, counts, output)?;
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
    let are_waiting = ready_in(&before.answer).is_some() && ready_in(&now.answer).is_some();
    let (before, now) = (&before.answer, &now.answer);
    // How long a node has been silent is in its words.
    let silent = |answer: &redlock_core::NodeAnswer| {
        matches!(answer, redlock_core::NodeAnswer::Unknown { .. })
    };
    are_waiting || before == now || silent(before) && silent(now)
}

#[derive(Serialize)]
struct Change<'a> {
    at_ms: u64,
    node: Option<&'a str>,
    votes: bool,
    why: Option<String>,
    /// In the line of the majority.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    counts: Option<Counts>,
}

/// How many nodes vote, how many there are, and how many must vote.
#[derive(Clone, Copy, Serialize)]
struct Counts {
    voting: usize,
    nodes: usize,
    majority: usize,
}

fn tell(report: &NodeReport, output: Output) -> Result<(), Failure> {
    let votes = votes(report);
    if output.is_json() {
        output.json(&Change {
            at_ms: now(),
            node: Some(&report.node),
            votes,
            why: (!votes).then(|| words(&report.answer)),
            counts: None,
        })?;
    } else if votes {
        output.marked(Mark::Good, &format!("{} {} votes", time(), report.node))?;
    } else {
        output.marked(Mark::Warning, &format!("{} {}", time(), line(report)))?;
    }
    Ok(())
}

fn majority(has: bool, counts: Counts, output: Output) -> Result<(), Failure> {
    let Counts { voting, nodes, .. } = counts;
    if output.is_json() {
        return Ok(output.json(&Change {
            at_ms: now(),
            node: None,
            votes: has,
            why: (!has).then(|| format!("{voting} of {nodes} nodes vote")),
            counts: Some(counts),
        })?);
    }
    let time = time();
    Ok(if has {
        output.marked(
            Mark::Good,
            &format!("{time} a majority votes: {voting} of {nodes} nodes"),
        )
    } else {
        let line =
            format!("{time} no quorum: {voting} of {nodes} nodes vote, nothing can be locked");
        output.marked(Mark::Bad, &line)
    }?)
}

fn now() -> u64 {
    u64::try_from(clock::wall().as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time of day, in UTC.
fn time() -> String {
    moment(clock::wall())
}

/// A quarantine ages by a second at most from one look to the next; the client itself looks more often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
