//! `redlock status`: the holder of a key, node by node.

use std::time::Duration;

use redlock_core::NodeReport;
use serde::Serialize;

use crate::{
    connection::Connection,
    context::Context,
    exit::{Exit, Failure},
    lookup::{self, KeyState, Owner, Said, UNLABELLED},
    output::{Mark, Output, millis, moment, rounded},
    policy, probe,
    processes::{Measured, Processes, Silent, Waiting},
    standing::{stand, votes},
};

/// The arguments of `status`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The resource, as the application names it
    key: String,

    #[command(flatten)]
    processes: Processes,

    #[command(flatten)]
    connection: Connection,
}

/// Tells whether a majority of the nodes has a key under one owner.
///
/// Ends with 0 if it is held, with 1 if it is free, and with 3 if that cannot be said.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let settings = policy::settings(&args.connection).await?;
    // An invalid key is reported before the command asks any node.
    settings.lock_key(&args.key)?;
    let processes = args.processes.addresses()?;
    let (_client, reports) = stand(context, &settings).await?;
    let places = probe::connect(&settings).await;
    let (_, said) = lookup::find(&places, &settings, &args.key).await?;
    let measured = processes.ask(settings.namespace()).await;
    let held = Held::of(&said, &reports, settings.majority());
    if context.output.is_json() {
        let json = held.as_json(&said, &reports, Waiters::of(&args.key, measured.as_ref()));
        context.output.json(&json)?;
    } else {
        held.print(&said, &reports, context.output)?;
        if let Some(measured) = &measured {
            print_waiting(&args.key, measured, context.output)?;
        }
    }
    Ok(match held.state {
        State::Held => Exit::Yes,
        State::Free => Exit::No,
        State::Unknown => Exit::NoQuorum,
    })
}

/// What all nodes together say of a key.
#[derive(Debug)]
struct Held {
    state: State,
    /// The owner on the most nodes.
    owner: Option<Owner>,
    /// The number of these nodes.
    nodes: usize,
    /// How many of these nodes vote.
    votes: usize,
    /// After how long a majority is free again, unless the lease is renewed.
    remaining: Option<Duration>,
    majority: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Held,
    Free,
    Unknown,
}

impl Held {
    fn of(said: &[Said], reports: &[NodeReport], majority: usize) -> Self {
        let times = |owner: &Owner| {
            let of_owner = said.iter().filter_map(|said| match &said.state {
                KeyState::Held(its, left) if its == owner => Some(left.unwrap_or(Duration::MAX)),
                _ => None,
            });
            let mut times: Vec<Duration> = of_owner.collect();
            // The lease lasts for as long as a majority keeps the key.
            times.sort_by_key(|left| std::cmp::Reverse(*left));
            times
        };
        let owners = said.iter().filter_map(|said| match &said.state {
            KeyState::Held(owner, _) => Some(owner),
            _ => None,
        });
        let first = owners.max_by_key(|owner| times(owner).len()).cloned();
        let kept = first.as_ref().map(times).unwrap_or_default();
        let has_it = |said: &Said| matches!(&said.state, KeyState::Held(owner, _) if Some(owner) == first.as_ref());
        let voting = said
            .iter()
            .zip(reports)
            .filter(|(said, report)| has_it(said) && votes(report));
        // What a node may have forgotten, it cannot call free.
        let free = said
            .iter()
            .zip(reports)
            .filter(|(said, report)| matches!(said.state, KeyState::Free) && votes(report));
        let others = said.len() - free.count();
        Self {
            state: if kept.len() >= majority {
                State::Held
            } else if others < majority {
                State::Free
            } else {
                State::Unknown
            },
            nodes: kept.len(),
            votes: voting.count(),
            remaining: kept.get(majority - 1).copied(),
            owner: first,
            majority,
        }
    }

    fn print(&self, said: &[Said], reports: &[NodeReport], output: Output) -> std::io::Result<()> {
        let left = self.remaining.map_or_else(String::new, |left| {
            if left == Duration::MAX {
                ", for ever".to_owned()
            } else {
                format!(", for {} unless renewed", rounded(left))
            }
        });
        let nodes = said.len();
        match self.state {
            State::Held => {
                let holder = holder(self.owner.as_ref());
                let since = self.owner.as_ref().and_then(Owner::since);
                let since = since.map_or_else(String::new, |since| format!(" since {}", moment(since)));
                output.line(&format!("held by {holder}{since}, {} of {nodes} nodes{left}", self.nodes))?;
            }
            State::Free => output.line("free: no majority of the nodes has it")?,
            State::Unknown => output.line(&format!(
                "unknown: {} of {nodes} nodes have it for one holder, {} would be a majority, and the others do not say enough",
                self.nodes, self.majority
            ))?,
        }
        for (said, report) in said.iter().zip(reports) {
            let node = &said.node;
            let voteless = if votes(report) {
                String::new()
            } else {
                format!(" ({})", report.answer)
            };
            match &said.state {
                KeyState::Free if votes(report) => {
                    output.marked(Mark::Good, &format!("{node} free"))?;
                }
                KeyState::Free => output.marked(
                    Mark::Warning,
                    &format!("{node} unknown: it does not have the key, and has no vote{voteless}"),
                )?,
                KeyState::Held(owner, left) => {
                    let left = left.map_or_else(
                        || "for ever".to_owned(),
                        |left| format!("for {}", rounded(left)),
                    );
                    let holder = holder(Some(owner));
                    let line = format!("{node} held by {holder} {left}{voteless}");
                    output.marked(Mark::Note, &line)?;
                }
                KeyState::Unknown(why) => {
                    output.marked(Mark::Bad, &format!("{node} unknown: {why}"))?;
                }
            }
        }
        Ok(())
    }

    fn as_json<'a>(
        &self,
        said: &'a [Said],
        reports: &[NodeReport],
        waiting: Option<Waiters<'a>>,
    ) -> Json<'a> {
        let nodes = said.iter().zip(reports).map(|(said, report)| {
            let (state, owner, left, why) = match &said.state {
                KeyState::Free if votes(report) => (State::Free, None, None, None),
                KeyState::Free => (State::Unknown, None, None, Some(report.answer.to_string())),
                KeyState::Held(owner, left) => {
                    let why = (!votes(report)).then(|| report.answer.to_string());
                    (State::Held, Some(owner), *left, why)
                }
                KeyState::Unknown(why) => (State::Unknown, None, None, Some(why.clone())),
            };
            NodeJson {
                node: &said.node,
                state,
                holder: owner.and_then(Owner::shown),
                remaining_ms: left.map(millis),
                votes: votes(report),
                why,
            }
        });
        Json {
            state: self.state,
            holder: self.owner.as_ref().and_then(Owner::shown),
            held_since_ms: self.owner.as_ref().and_then(Owner::since).map(millis),
            nodes_with_key: self.nodes,
            votes: self.votes,
            majority: self.majority,
            remaining_ms: self
                .remaining
                .filter(|left| *left != Duration::MAX)
                .map(millis),
            waiting,
            nodes: nodes.collect(),
        }
    }
}

/// Tells how many callers may wait for a key, and where.
fn print_waiting(key: &str, measured: &Measured, output: Output) -> std::io::Result<()> {
    let waiting = measured.of(key);
    if waiting.is_empty() {
        output.marked(Mark::Good, "nobody is known to wait")?;
    }
    for waiting in waiting {
        output.marked(Mark::Note, &format!("callers that wait: {waiting}"))?;
    }
    for Silent { process, why } in &measured.silent {
        output.marked(
            Mark::Bad,
            &format!("{process} does not say who waits: {why}"),
        )?;
    }
    Ok(())
}

/// Returns the holder of a key in words.
pub(crate) fn holder(owner: Option<&Owner>) -> String {
    let shown = owner.and_then(Owner::shown);
    shown.unwrap_or_else(|| UNLABELLED.to_owned())
}

#[derive(Serialize)]
struct Json<'a> {
    state: State,
    holder: Option<String>,
    /// Since 1970, by the holder's clock.
    held_since_ms: Option<f64>,
    nodes_with_key: usize,
    /// How many of these nodes vote.
    votes: usize,
    majority: usize,
    remaining_ms: Option<f64>,
    /// Missing where no process was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<Waiters<'a>>,
    nodes: Vec<NodeJson<'a>>,
}

/// The callers that may wait for the key.
#[derive(Serialize)]
struct Waiters<'a> {
    callers: u64,
    processes: Vec<&'a Waiting>,
    silent: &'a [Silent],
}

impl<'a> Waiters<'a> {
    fn of(key: &str, measured: Option<&'a Measured>) -> Option<Self> {
        let measured = measured?;
        let processes = measured.of(key);
        Some(Self {
            callers: processes.iter().map(|waiting| waiting.callers).sum(),
            processes,
            silent: &measured.silent,
        })
    }
}

#[derive(Serialize)]
struct NodeJson<'a> {
    node: &'a str,
    state: State,
    holder: Option<String>,
    remaining_ms: Option<f64>,
    votes: bool,
    why: Option<String>,
}
