//! `redlock roll`: restarts one node after the other, each only while the other nodes are a quorum.

use std::{
    ffi::OsString,
    io,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use redlock_core::{
    AcquireErrorKind, AcquireOptions, LockGuard, NodeAnswer, NodeReport, NotAVote, Redlock, Wait,
};
use serde::Serialize;
use tokio::process::Command;
use uuid::Uuid;

use crate::{
    child, clock,
    connection::{Connection, Settings, duration},
    context::Context,
    exit::{Exit, Failure},
    namespaces::{ADVICE, Others},
    output::{Mark, Output, millis, rounded},
    policy, probe,
    standing::{votes, words},
};

/// The arguments of `roll`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The time that a node has from its restart to its vote [default: two quarantines and a minute]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,

    /// Does not wait for votes in this namespace, which no client uses
    #[arg(long, value_name = "NAMESPACE")]
    ignore: Vec<String>,

    #[command(flatten)]
    connection: Connection,

    /// The command that restarts one node; {node} stands for its address, {host} and {port} for the parts, a host of
    /// IPv6 without brackets; REDLOCK_ROLL_NODE has the address, too
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The variable with the address of the node to restart; no client takes its name for a misspelt one of its own.
const NODE_VARIABLE: &str = "REDLOCK_ROLL_NODE";

#[derive(Serialize)]
struct Done<'a> {
    node: &'a str,
    away_ms: f64,
}

/// For each node: makes sure that the others are a quorum, restarts it, and waits until it votes, in each namespace.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let settings = policy::settings(&args.connection).await?;
    let client = context.client(settings.builder()).await?;
    let output = context.output;
    let others = Others::find(&settings, "roll", &args.ignore).await;
    if let Some(names) = others.names() {
        output.progress(&format!(
            "waits for votes in other namespaces, too: {names}"
        ));
    }
    if let Some(why) = &others.unknown {
        let message = format!("votes in other namespaces are not waited for at every node: {why}");
        output.complain(&message)?;
    }
    let quarantine = settings.quarantine().max(others.quarantine());
    let limit = args
        .timeout
        .unwrap_or_else(|| quarantine * 2 + Duration::from_secs(60));
    // Held to the end, by the nodes that are left.
    let alone = keep_others_out(&client).await?;
    let nodes = client.node_reports().await;
    for (at, report) in nodes.iter().enumerate() {
        let node = &*report.node;
        have_all_write(&client, &settings).await;
        others_vote(&client, at, &settings, node).await?;
        if let Some(why) = others.are_at_risk(at, &settings).await {
            return Err(Failure::NoQuorum(format!("{node} is not restarted: {why}")));
        }
        if !alone.is_held() {
            return Err(Failure::NoQuorum(format!(
                "{node} is not restarted: the lock {ROLL_KEY} is lost, so another roll may be under way; nothing more is \
                 restarted"
            )));
        }
        let before = run_id(&settings, at).await.ok_or_else(|| {
            Failure::wrong(format!(
                "{node} is not restarted: it does not say which run of the server it is, so nobody could tell whether it \
                 was restarted; nothing more is restarted"
            ))
        })?;
        let begun = clock::now();
        output.progress(&format!("restarting {node}"));
        let words = args.command.iter().map(|word| filled_in(word, node));
        let mut words = words.collect::<Vec<_>>().into_iter();
        let program = words.next().unwrap_or_default();
        let mut command = Command::new(&program);
        command.args(words).env(NODE_VARIABLE, node);
        if output.is_json() {
            // What it says is no JSON of ours.
            command.stdout(io::stderr());
        }
        match child::run(command, &program, context).await? {
            Exit::Child(0) => {}
            exit @ Exit::Child(126 | 127) => {
                let message = format!("the command failed for {node}: nothing more is restarted");
                drop(output.complain(&message));
                return Ok(exit);
            }
            _ => {
                let message = format!("the command failed for {node}: nothing more is restarted");
                return Err(Failure::wrong(message));
            }
        }
        await_return(&client, at, &settings, &before, limit, output).await?;
        await_other_votes(&others, at, &settings, node, limit, output).await?;
        let away = begun.elapsed();
        if output.is_json() {
            output.json(&Done {
                node,
                away_ms: millis(away),
            })?;
        } else {
            let line = format!(
                "{node} votes again, {} after its restart began",
                rounded(away)
            );
            output.marked(Mark::Good, &line)?;
        }
    }
    Ok(Exit::Yes)
}

/// Acquires the lock that excludes another roll of the namespace: each would count on nodes that the other restarts.
async fn keep_others_out(client: &Redlock) -> Result<LockGuard, Failure> {
    let options = AcquireOptions::new().wait(Wait::UpTo(SETTLE));
    client
        .acquire_with(ROLL_KEY, options)
        .await
        .map_err(|error| match error.kind() {
            AcquireErrorKind::Contended => {
                let holder = error.holder().map(|holder| format!(" ({holder})"));
                let holder = holder.unwrap_or_default();
                Failure::wrong(format!(
                    "another roll is under way{holder}: it holds the lock {ROLL_KEY}; nothing is restarted"
                ))
            }
            _ => error.into(),
        })
}

/// Asks all nodes for a lock on a key that no other client uses, so that the client knows which nodes refuse to write.
///
/// A node whose memory is full votes, and grants nothing.
async fn have_all_write(client: &Redlock, settings: &Settings) {
    let key = format!("redlock-roll:{}", Uuid::new_v4().simple());
    let options = AcquireOptions::new().wait(Wait::Never);
    // Whatever comes of it, the nodes say why.
    if let Ok(guard) = client.acquire_with(key, options).await {
        drop(guard.release().await);
    }
    // For late answers: a slow node may refuse after the majority has answered.
    tokio::time::sleep(settings.node_timeout() + LOOK_EVERY).await;
}

/// Waits for a moment until the other nodes are a quorum without this one: they vote as the client knows them, and answer
/// now, because a client takes a moment to notice one that froze.
async fn others_vote(
    client: &Redlock,
    node: usize,
    settings: &Settings,
    name: &str,
) -> Result<(), Failure> {
    let begun = clock::now();
    loop {
        let reports = client.node_reports().await;
        let others = reports.iter().enumerate().filter(|(at, _)| *at != node);
        let objections = others.map(|(at, report)| objection(report, at, settings));
        let objections = join_all(objections).await;
        let count = objections.iter().filter(|why| why.is_none()).count();
        if count >= settings.majority() {
            return Ok(());
        }
        if begun.elapsed() > SETTLE {
            let mut message = format!(
                "{name} is not restarted: without it {count} of {} nodes vote, and {} are needed",
                reports.len(),
                settings.majority()
            );
            for why in objections.iter().flatten() {
                message += &format!("\n  {why}");
            }
            return Err(Failure::NoQuorum(message));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Says why a node cannot be counted on; `None` if it can.
async fn objection(report: &NodeReport, node: usize, settings: &Settings) -> Option<String> {
    if !votes(report) {
        return Some(report.to_string());
    }
    match run_id(settings, node).await {
        Some(_) => None,
        None => Some(format!("{}: it does not answer INFO", report.node)),
    }
}

/// Waits until a node is another run of the server, and votes.
async fn await_return(
    client: &Redlock,
    node: usize,
    settings: &Settings,
    before: &str,
    limit: Duration,
    output: Output,
) -> Result<(), Failure> {
    let begun = clock::now();
    let mut said = Said::None;
    let (mut is_new, mut is_there) = (false, true);
    loop {
        if !is_new {
            let now = run_id(settings, node).await;
            is_there = now.is_some();
            is_new = now.is_some_and(|now| now != before);
        }
        let report = client.node_reports().await.swap_remove(node);
        // A client that has not noticed the restart yet says that the node votes.
        if is_new && votes(&report) && was_seen_in_this_run(settings, node).await {
            return Ok(());
        }
        if let NodeAnswer::NotAVote {
            reason: NotAVote::PolicyMismatch { .. },
        } = &report.answer
        {
            // Waiting does not help.
            return Err(Failure::NoQuorum(format!(
                "{report}\nnothing more is restarted"
            )));
        }
        if begun.elapsed() > limit {
            let why = if is_new {
                format!(
                    "it does not vote {} after its restart: {}",
                    rounded(limit),
                    report.answer
                )
            } else if is_there {
                format!("the command did not restart it within {}", rounded(limit))
            } else {
                format!(
                    "it has not come back {} after its restart: {}",
                    rounded(limit),
                    report.answer
                )
            };
            let name = &report.node;
            let failure = if is_new || !is_there {
                Failure::NoQuorum
            } else {
                Failure::Wrong
            };
            return Err(failure(format!("{name}: {why}; nothing more is restarted")));
        }
        let state = if is_new {
            words(&report.answer)
        } else if is_there {
            "its server is still the one from before".to_owned()
        } else {
            "its server is away".to_owned()
        };
        say(&mut said, &report.node, &state, output);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits until a node votes in the other namespaces, too.
async fn await_other_votes(
    others: &Others,
    node: usize,
    settings: &Settings,
    name: &str,
    limit: Duration,
    output: Output,
) -> Result<(), Failure> {
    let begun = clock::now();
    let mut said = Said::None;
    while let Some(why) = others.missing(node, settings).await {
        if begun.elapsed() > limit {
            return Err(Failure::NoQuorum(format!(
                "{name}: {why}; {ADVICE}; nothing more is restarted"
            )));
        }
        say(&mut said, name, &why, output);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// What was said of a wait, and when.
type Said = Option<(Instant, String)>;

/// Says what a node waits for when that changes, and now and then.
fn say(said: &mut Said, name: &str, state: &str, output: Output) {
    let now = clock::now();
    // A time that is left changes with each look.
    let kind: String = state.chars().filter(|c| !c.is_ascii_digit()).collect();
    let is_old =
        |(at, before): &(Instant, String)| now.duration_since(*at) >= SAY_EVERY || *before != kind;
    if said.as_ref().is_none_or(is_old) {
        *said = Some((now, kind));
        output.progress(&format!("{name}: {state}"));
    }
}

async fn run_id(settings: &Settings, node: usize) -> Option<String> {
    let place = probe::connect_to(settings, node).await?;
    let info = place.probe.ok()?.info().await.ok()?;
    Some(info.text("run_id").to_owned()).filter(|id| !id.is_empty())
}

/// Returns whether a node votes as a new client sees it, which knows only the present run of the server.
async fn was_seen_in_this_run(settings: &Settings, node: usize) -> bool {
    let Ok(client) = settings.builder().build().await else {
        return false;
    };
    let report = client.node_reports().await.swap_remove(node);
    client.close().await;
    votes(&report)
}

fn filled_in(word: &OsString, node: &str) -> OsString {
    let Some(text) = word.to_str() else {
        return word.clone();
    };
    let (host, port) = node.rsplit_once(':').unwrap_or((node, ""));
    text.replace("{node}", node)
        .replace("{host}", bare(host))
        .replace("{port}", port)
        .into()
}

/// Returns a host as programs take it that are given no port with it: an address of IPv6 without its brackets.
fn bare(host: &str) -> &str {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host)
}

/// The name of the lock that is held for a whole roll.
const ROLL_KEY: &str = "redlock-roll";

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often the command reports that it waits.
const SAY_EVERY: Duration = Duration::from_secs(5);
/// Nodes say where they stand a moment after they were reached.
const SETTLE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_given_as_ssh_takes_it() {
        let word = OsString::from("{host} {port} {node}");
        assert_eq!(filled_in(&word, "[::1]:79"), "::1 79 [::1]:79");
        assert_eq!(filled_in(&word, "redis-1:79"), "redis-1 79 redis-1:79");
    }
}
