//! `redlock roll`: restarts one node after the other, each only while the other nodes are a quorum.

mod template;

use std::{
    ffi::OsString,
    io,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use redlock_core::{
    AcquireErrorKind, AcquireOptions, LockGuard, NodeAnswer, NodeReport, NotAVote, Redlock, Wait,
};
use serde_json::json;
use tokio::process::Command;
use uuid::Uuid;

use self::template::Template;
use crate::{
    clock::{self, duration, millis, rounded},
    connection::{ConnectionArgs, NodeSettings},
    context::{CommandContext, run_program},
    exit::{CommandError, CommandResult, Exit},
    namespaces::{ADVICE, OtherNamespaces},
    nodes::{self, votes, words},
    output::{LineMark, Output},
    probe,
};

/// The arguments of `roll`.
#[derive(clap::Args, Debug)]
pub(crate) struct RollArgs {
    /// The time that a node has from its restart to its vote [default: two quarantines and a minute]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,

    /// Does not wait for votes in this namespace, which no client uses
    #[arg(long, value_name = "NAMESPACE")]
    ignore: Vec<String>,

    #[command(flatten)]
    connection: ConnectionArgs,

    /// The command that restarts one node; {node} stands for its name, which is its address unless Sentinels or a Cluster
    /// name its server, and {host} and {port} for the address of its server at that moment, a host of IPv6 without
    /// brackets; REDLOCK_ROLL_NODE has the name, too, and REDLOCK_ROLL_SERVER the address
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The variable with the name of the node to restart; no client takes its name for a misspelt one of its own.
const NODE_VARIABLE: &str = "REDLOCK_ROLL_NODE";

/// The variable with the address of the server to restart.
const SERVER_VARIABLE: &str = "REDLOCK_ROLL_SERVER";

/// For each node: makes sure that the others are a quorum, restarts it, and waits until it votes, in each namespace.
pub(crate) async fn run(args: RollArgs, context: &CommandContext) -> CommandResult {
    let template = Template::read(args.command)?;
    let settings = args.connection.settings().await?;
    let client = context.client(settings.builder()).await?;
    let output = context.output;
    let others = OtherNamespaces::find(&settings, "roll", &args.ignore).await;
    if let Some(names) = others.names() {
        let message = format!("waits for votes in other namespaces, too: {names}");
        output.progress(&message);
    }
    if let Some(why) = &others.unknown {
        let message = format!("votes in other namespaces are not waited for at every node: {why}");
        output.complain(&message)?;
    }
    let quarantine = settings.quarantine().max(others.quarantine());
    let usual = quarantine * 2 + Duration::from_secs(60);
    let roll = RollingRestart {
        limit: args.timeout.unwrap_or(usual),
        client,
        settings,
        others,
        output,
    };
    // Held to the end, by the nodes that are left.
    let alone = keep_others_out(&roll.client).await?;
    for (at, report) in roll.client.node_reports().await.iter().enumerate() {
        let node = &*report.node;
        let before = roll.check(at, node, &alone).await?;
        let begun = clock::now();
        let name = nodes::name_at(node, before.named());
        output.progress(&format!("restarting {name}"));
        let mut words = template.filled_in(node, &before.address).into_iter();
        let program = words.next().unwrap_or_default();
        let mut command = Command::new(&program);
        command.args(words).env(NODE_VARIABLE, node);
        command.env(SERVER_VARIABLE, &before.address);
        if output.is_json() {
            // What it says is no JSON of ours.
            command.stdout(io::stderr());
        }
        let exit = run_program(command, &program, context).await?;
        if exit != Exit::Child(0) {
            let message = format!("the command failed for {name}: nothing more is restarted");
            if !matches!(exit, Exit::Child(126 | 127)) {
                return Err(CommandError::wrong(message));
            }
            drop(output.complain(&message));
            return Ok(exit);
        }
        let after = roll.await_return(at, &before.run).await?;
        roll.await_other_votes(at, node).await?;
        let away = begun.elapsed();
        if output.is_json() {
            output.json(&json!({
                "node": node,
                // Where others name it: that which was restarted, and that which votes now.
                "server": before.named(),
                "server_now": after.server(),
                "away_ms": millis(away),
            }))?;
        } else {
            let (name, away) = (nodes::name(&after), rounded(away));
            let is_another = before.named() != after.server();
            let whose = match before.named().filter(|_| is_another) {
                Some(server) => format!("the restart of {server}"),
                None => "its restart".to_owned(),
            };
            let line = format!("{name} votes again, {away} after {whose} began");
            output.marked(LineMark::Good, &line)?;
        }
    }
    Ok(Exit::Yes)
}

/// Acquires the lock that excludes another roll of the namespace: each would count on nodes that the other restarts.
async fn keep_others_out(client: &Redlock) -> Result<LockGuard, CommandError> {
    let options = AcquireOptions::new().wait(Wait::UpTo(SETTLE));
    client
        .acquire_with(ROLL_KEY, options)
        .await
        .map_err(|error| match error.kind() {
            AcquireErrorKind::Contended => {
                let holder = error.holder().map(|holder| format!(" ({holder})"));
                let holder = holder.unwrap_or_default();
                CommandError::wrong(format!(
                    "another roll is under way{holder}: it holds the lock {ROLL_KEY}; nothing is restarted"
                ))
            }
            _ => error.into(),
        })
}

/// The server of a node, before it is restarted.
struct RestartTarget {
    address: String,
    /// Whether others name it.
    is_named: bool,
    /// Which run of it this is.
    run: String,
}

impl RestartTarget {
    /// Returns its address if others name it, and not the node itself.
    fn named(&self) -> Option<&str> {
        self.is_named.then_some(&*self.address)
    }
}

/// The restart of one node after the other.
struct RollingRestart {
    client: Redlock,
    settings: NodeSettings,
    others: OtherNamespaces,
    /// The time that a node has from its restart to its vote.
    limit: Duration,
    output: Output,
}

impl RollingRestart {
    /// Makes sure that a node can be restarted, and returns its server.
    async fn check(
        &self,
        at: usize,
        node: &str,
        alone: &LockGuard,
    ) -> Result<RestartTarget, CommandError> {
        write_once_to_all(&self.client, &self.settings).await;
        self.others_vote(at, node).await?;
        let refused = |why: &str| format!("{node} is not restarted: {why}");
        if let Some(why) = self.others.are_at_risk(at, &self.settings).await {
            return Err(CommandError::NoQuorum(refused(&why)));
        }
        if !alone.is_held() {
            return Err(CommandError::NoQuorum(refused(&format!(
                "the lock {ROLL_KEY} is lost, so another roll may be under way; nothing more is restarted"
            ))));
        }
        let run = run_id(&self.settings, at).await.ok_or_else(|| {
            CommandError::Wrong(refused(
                "it does not say which run of the server it is, so nobody could tell whether it was restarted; nothing \
                 more is restarted",
            ))
        })?;
        // Last, because another server may take its place at any time.
        let address = self.named_server(at).await.map_err(|why| {
            CommandError::NoQuorum(refused(&format!("{why}; nothing more is restarted")))
        })?;
        Ok(RestartTarget {
            is_named: address.is_some(),
            address: address.unwrap_or_else(|| node.to_owned()),
            run,
        })
    }

    /// Waits for a moment until a node votes by the server that others name, and returns its address; `None` if no others
    /// name it.
    ///
    /// # Errors
    ///
    /// It does not vote, or no majority names a server, or they name another one than that which votes: to restart the
    /// server of another moment would take the node's vote away, or the only copy of what it has.
    async fn named_server(&self, node: usize) -> Result<Option<String>, String> {
        let config = &self.settings.config.nodes[node];
        if !config.follows_failovers() {
            return Ok(None);
        }
        let (begun, limit) = (clock::now(), self.settings.connect_timeout());
        loop {
            let report = self.client.node_reports().await.swap_remove(node);
            let naming = config.naming(self.settings.namespace(), limit).await?;
            let named = naming.and_then(|naming| naming.majority);
            let why = match (report.server(), named) {
                _ if !votes(&report) => format!(
                    "it has no vote, and not because of this roll: {}",
                    words(&report)
                ),
                (Some(server), Some((named, _))) if *server == *named => {
                    return Ok(Some(named.to_string()));
                }
                (_, None) => "no majority names its server now".to_owned(),
                (_, Some((named, _))) => {
                    format!("{named} is about to take the place of its server")
                }
            };
            if begun.elapsed() > SETTLE {
                return Err(why);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits for a moment until the other nodes are a quorum without this one: they vote as the client knows them, and
    /// answer now, because a client takes a moment to notice one that froze.
    async fn others_vote(&self, node: usize, name: &str) -> Result<(), CommandError> {
        let (begun, majority) = (clock::now(), self.settings.majority());
        loop {
            let reports = self.client.node_reports().await;
            let others = reports.iter().enumerate().filter(|(at, _)| *at != node);
            let objections = others.map(|(at, report)| objection(report, at, &self.settings));
            let objections = join_all(objections).await;
            let count = objections.iter().filter(|why| why.is_none()).count();
            if count >= majority {
                return Ok(());
            }
            if begun.elapsed() > SETTLE {
                let nodes = reports.len();
                let mut message = format!(
                    "{name} is not restarted: without it {count} of {nodes} nodes vote, and {majority} are needed"
                );
                for why in objections.iter().flatten() {
                    message += &format!("\n  {why}");
                }
                return Err(CommandError::NoQuorum(message));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until a node is another run of the server, and votes.
    ///
    /// Another server that has taken its place is another run, too.
    async fn await_return(&self, node: usize, before: &str) -> Result<NodeReport, CommandError> {
        let begun = clock::now();
        let mut said = None;
        let (mut is_new, mut is_there) = (false, true);
        loop {
            if !is_new {
                let now = run_id(&self.settings, node).await;
                is_there = now.is_some();
                is_new = now.is_some_and(|now| now != before);
            }
            let report = self.client.node_reports().await.swap_remove(node);
            // A client that has not noticed the restart yet says that the node votes.
            if is_new && votes(&report) && was_seen_in_this_run(&self.settings, node).await {
                return Ok(report);
            }
            if let NodeAnswer::NotAVote {
                reason: NotAVote::PolicyMismatch { .. },
            } = &report.answer
            {
                // Waiting does not help.
                let message = format!("{report}\nnothing more is restarted");
                return Err(CommandError::NoQuorum(message));
            }
            if begun.elapsed() > self.limit {
                let (limit, name, answer) = (rounded(self.limit), &report.node, &report.answer);
                let (failure, why): (fn(String) -> CommandError, _) = match (is_new, is_there) {
                    (true, _) => (
                        CommandError::NoQuorum,
                        format!("it does not vote {limit} after its restart: {answer}"),
                    ),
                    (false, true) => (
                        CommandError::Wrong,
                        format!("the command did not restart it within {limit}"),
                    ),
                    (false, false) => (
                        CommandError::NoQuorum,
                        format!("it has not come back {limit} after its restart: {answer}"),
                    ),
                };
                return Err(failure(format!("{name}: {why}; nothing more is restarted")));
            }
            let state = match (is_new, is_there) {
                (true, _) => words(&report),
                (false, true) => "its server is still the one from before".to_owned(),
                (false, false) => "its server is away".to_owned(),
            };
            self.say(&mut said, &report.node, &state);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until a node votes in the other namespaces, too.
    async fn await_other_votes(&self, node: usize, name: &str) -> Result<(), CommandError> {
        let begun = clock::now();
        let mut said = None;
        while let Some(why) = self.others.missing(node, &self.settings).await {
            if begun.elapsed() > self.limit {
                return Err(CommandError::NoQuorum(format!(
                    "{name}: {why}; {ADVICE}; nothing more is restarted"
                )));
            }
            self.say(&mut said, name, &why);
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Says what a node waits for when that changes, and now and then; `said` is what was said last, and when.
    fn say(&self, said: &mut Option<(Instant, String)>, name: &str, state: &str) {
        let now = clock::now();
        // A time that is left changes with each look.
        let kind: String = state.chars().filter(|c| !c.is_ascii_digit()).collect();
        let is_old = |(at, before): &(Instant, String)| {
            now.duration_since(*at) >= SAY_EVERY || *before != kind
        };
        if said.as_ref().is_none_or(is_old) {
            *said = Some((now, kind));
            self.output.progress(&format!("{name}: {state}"));
        }
    }
}

/// Asks all nodes for a lock on a key that no other client uses, so that the client knows which nodes refuse to write.
///
/// A node whose memory is full votes, and grants nothing.
async fn write_once_to_all(client: &Redlock, settings: &NodeSettings) {
    let key = format!("redlock-roll:{}", Uuid::new_v4().simple());
    let options = AcquireOptions::new().wait(Wait::Never);
    // Whatever comes of it, the nodes say why.
    if let Ok(guard) = client.acquire_with(key, options).await {
        drop(guard.release().await);
    }
    // For late answers: a slow node may refuse after the majority has answered.
    tokio::time::sleep(settings.node_timeout() + LOOK_EVERY).await;
}

/// Says why a node cannot be counted on; `None` if it can.
async fn objection(report: &NodeReport, node: usize, settings: &NodeSettings) -> Option<String> {
    if !votes(report) {
        return Some(report.to_string());
    }
    match run_id(settings, node).await {
        Some(_) => None,
        None => Some(format!("{}: it does not answer INFO", report.node)),
    }
}

async fn run_id(settings: &NodeSettings, node: usize) -> Option<String> {
    let place = probe::connect_to(settings, node).await?;
    let info = place.probe.ok()?.info().await.ok()?;
    Some(info.text("run_id").to_owned()).filter(|id| !id.is_empty())
}

/// Returns whether a node votes as a new client sees it, which knows only the present run of the server.
async fn was_seen_in_this_run(settings: &NodeSettings, node: usize) -> bool {
    let Ok(client) = settings.builder().build().await else {
        return false;
    };
    let report = client.node_reports().await.swap_remove(node);
    client.close().await;
    votes(&report)
}

/// The name of the lock that is held for a whole roll.
const ROLL_KEY: &str = "redlock-roll";

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often the command reports that it waits.
const SAY_EVERY: Duration = Duration::from_secs(5);
/// Nodes say where they stand a moment after they were reached.
const SETTLE: Duration = Duration::from_secs(3);
