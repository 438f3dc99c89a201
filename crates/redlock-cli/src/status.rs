//! `redlock status`: the holder of a key, node by node.

use std::{io, time::Duration};

use redlock_core::NodeReport;
use redlock_proto::KeyVerdict;
use serde_json::{Value, json};

use crate::{
    clock::{lasting, millis, moment},
    connection::ConnectionArgs,
    context::CommandContext,
    exit::{CommandResult, Exit},
    lookup::line::Line,
    lookup::{self, KeyLook, KeyState, Owner},
    nodes::{self, votes},
    output::{LineMark, Output},
    probe,
};

/// The arguments of `status`.
#[derive(clap::Args, Debug)]
pub(crate) struct StatusArgs {
    /// The resource, as the application names it
    key: String,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Tells whether a majority of the nodes has a key under one owner.
///
/// Ends with 0 if it is held, with 1 if it is free, and with 3 if that cannot be said.
pub(crate) async fn run(args: StatusArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    // An invalid key is reported before the command asks any node.
    let name = settings.key(&args.key)?;
    let (_client, reports) = nodes::connect(context, &settings).await?;
    let places = probe::connect(&settings).await;
    let (_, said) = lookup::find(&places, &settings, &args.key).await?;
    let status = KeyStatus::of(&said, &reports, settings.majority());
    let mut slots = Vec::new();
    if status.is_held != Some(true)
        && let Some(count) = lookup::slots(&places, &name).await
    {
        for slot in 0..count {
            let slot = lookup::find(&places, &settings, &format!("{}#{slot}", args.key)).await?;
            slots.push(slot.1);
        }
    }
    let slots = slots.iter();
    let slots = slots.map(|said| KeyStatus::of(said, &reports, settings.majority()));
    let slots = SlotStatus(slots.collect());
    if context.output.is_json() {
        let mut json = status.to_json();
        if !slots.0.is_empty() {
            json["state"] = state(slots.is_held()).into();
            json["slots"] = slots.0.iter().map(KeyStatus::to_json).collect();
        }
        context.output.json(&json)?;
    } else {
        match slots.0.is_empty() {
            true => status.print(context.output)?,
            false => slots.print(context.output)?,
        }
    }
    let is_held = match slots.0.is_empty() {
        true => status.is_held,
        false => slots.is_held(),
    };
    Ok(match is_held {
        Some(true) => Exit::Yes,
        Some(false) => Exit::No,
        None => Exit::NoQuorum,
    })
}

/// What all nodes together say of a key.
struct KeyStatus<'a> {
    /// `None` if that cannot be said.
    is_held: Option<bool>,
    /// The owner on the most nodes.
    owner: Option<&'a Owner>,
    /// The number of these nodes.
    count: usize,
    /// How many of these nodes vote.
    votes: usize,
    /// After how long a majority is free again, unless the lease is renewed.
    remaining: Option<Duration>,
    majority: usize,
    /// The callers in line; `None` if too few nodes have answered.
    line: Option<Line>,
    nodes: Vec<(&'a KeyLook, &'a NodeReport)>,
}

impl<'a> KeyStatus<'a> {
    fn of(said: &'a [KeyLook], reports: &'a [NodeReport], majority: usize) -> Self {
        // Two looks name one owner if their values are equal.
        let first = |owner: &Owner| said.iter().position(|said| said.owner() == Some(owner));
        let nodes: Vec<_> = said.iter().zip(reports).collect();
        let answers = nodes.iter().map(|(said, report)| {
            let owners = match &said.state {
                KeyState::Free => Some(Vec::new()),
                KeyState::Held(owner, left) => {
                    Some(vec![(first(owner), left.unwrap_or(Duration::MAX))])
                }
                KeyState::Unknown(_) => None,
            };
            (owners, &report.answer)
        });
        let verdict = KeyVerdict::of(answers, majority);
        let count = |owner: &&Owner| {
            let with_key = said.iter().filter(|said| said.owner() == Some(*owner));
            with_key.count()
        };
        let owners = said.iter().filter_map(KeyLook::owner);
        let owner = match verdict {
            KeyVerdict::Held { owner, .. } => owner.and_then(|first| said[first].owner()),
            _ => owners.max_by_key(count),
        };
        let has_it = |said: &KeyLook| owner.is_some() && said.owner() == owner;
        let with_key = nodes.iter().filter(|(said, _)| has_it(said));
        let voting = with_key.clone().filter(|(_, report)| report.answer.votes());
        let answered = said.iter().filter(|said| said.is_known()).count();
        Self {
            is_held: match verdict {
                KeyVerdict::Held { .. } => Some(true),
                KeyVerdict::Free => Some(false),
                KeyVerdict::Unknown => None,
            },
            owner,
            count: with_key.count(),
            votes: voting.count(),
            remaining: match verdict {
                KeyVerdict::Held { remaining, .. } => Some(remaining),
                _ => None,
            },
            majority,
            line: (answered >= majority).then(|| Line::of(said, majority)),
            nodes,
        }
    }

    /// Returns what all nodes together say, in words.
    fn verdict(&self) -> String {
        let (count, nodes, majority) = (self.count, self.nodes.len(), self.majority);
        match (self.is_held, self.owner) {
            (Some(true), Some(owner)) => {
                let holder = owner.holder();
                let since = owner
                    .since()
                    .map(|since| format!(" since {}", moment(since)));
                let since = since.unwrap_or_default();
                let left = match self.remaining {
                    Some(Duration::MAX) => ", for ever".to_owned(),
                    Some(left) => format!(", {} unless renewed", lasting(Some(left))),
                    None => String::new(),
                };
                format!("held by {holder}{since}, {count} of {nodes} nodes{left}")
            }
            (Some(_), _) => "free: no majority of the nodes has it".to_owned(),
            (None, None) => format!(
                "unknown: no node that has answered has it, and fewer than {majority} of these vote"
            ),
            (None, Some(_)) => format!(
                "unknown: {count} of {nodes} nodes have it for one holder, and {} of these vote; {majority} that vote \
                 would be a majority",
                self.votes
            ),
        }
    }

    fn print(&self, output: Output) -> io::Result<()> {
        output.line(&self.verdict())?;
        for (said, report) in &self.nodes {
            let node = nodes::name(report);
            let voteless = match votes(report) {
                true => String::new(),
                false => format!(" ({})", report.answer),
            };
            let (mark, words) = match &said.state {
                KeyState::Free if report.answer.votes() => (LineMark::Good, "free".to_owned()),
                KeyState::Free => (
                    LineMark::Warning,
                    format!("unknown: it does not have the key, and has no vote{voteless}"),
                ),
                KeyState::Held(owner, left) => (
                    LineMark::Note,
                    format!("held by {} {}{voteless}", owner.holder(), lasting(*left)),
                ),
                KeyState::Unknown(why) => (LineMark::Bad, format!("unknown: {why}")),
            };
            output.marked(mark, &format!("{node} {words}"))?;
        }
        // Its node keeps neither its name nor its place.
        let is_wished_for = self.owner.is_some_and(Owner::is_wished_for);
        match &self.line {
            _ if is_wished_for => output.marked(LineMark::Note, WISHED),
            Some(line) => line.print(output),
            None => Ok(()),
        }
    }

    fn to_json(&self) -> Value {
        let nodes = self.nodes.iter().map(|(said, report)| {
            let votes = report.answer.votes();
            let (is_held, left, why) = match &said.state {
                KeyState::Free if votes => (Some(false), None, None),
                KeyState::Free => (None, None, Some(report.answer.to_string())),
                KeyState::Held(_, left) => {
                    let why = (!votes).then(|| report.answer.to_string());
                    (Some(true), *left, why)
                }
                KeyState::Unknown(why) => (None, None, Some(why.clone())),
            };
            json!({
                "node": &*report.node,
                "server": report.server(),
                "state": state(is_held),
                "holder": said.owner().and_then(Owner::shown),
                "remaining_ms": left.map(millis),
                "votes": votes,
                "why": why,
            })
        });
        let remaining = self.remaining.filter(|left| *left != Duration::MAX);
        // What nodes without a vote have is no word of a holder.
        let holder = self.owner.filter(|_| self.is_held == Some(true));
        json!({
            "state": state(self.is_held),
            "holder": holder.and_then(Owner::shown),
            // Since 1970, by the holder's clock.
            "held_since_ms": holder.and_then(Owner::since).map(millis),
            "nodes_with_key": self.count,
            "votes": self.votes,
            "majority": self.majority,
            "remaining_ms": remaining.map(millis),
            "line": self.line.as_ref().map(Line::to_json),
            // A caller waits to hold a shared key exclusively; it is not in line.
            "exclusive_awaited": holder.is_some_and(Owner::is_wished_for),
            "nodes": nodes.collect::<Vec<_>>(),
        })
    }
}

/// What the nodes say of each slot of a resource.
struct SlotStatus<'a>(Vec<KeyStatus<'a>>);

impl SlotStatus<'_> {
    /// Returns whether a slot is held; `None` if that cannot be said.
    fn is_held(&self) -> Option<bool> {
        let mut slots = self.0.iter().map(|slot| slot.is_held);
        match slots.clone().any(|slot| slot == Some(true)) {
            true => Some(true),
            false => slots.all(|slot| slot == Some(false)).then_some(false),
        }
    }

    fn print(&self, output: Output) -> io::Result<()> {
        let taken = self.0.iter().filter(|slot| slot.is_held == Some(true));
        let (taken, count) = (taken.count(), self.0.len());
        output.line(&format!("{taken} of {count} slots are held"))?;
        for (number, slot) in self.0.iter().enumerate() {
            let mark = match slot.is_held {
                Some(true) => LineMark::Note,
                Some(false) => LineMark::Good,
                None => LineMark::Warning,
            };
            output.marked(mark, &format!("slot {number} {}", slot.verdict()))?;
        }
        Ok(())
    }
}

/// The words for a caller that waits for exclusive ownership of a shared key.
const WISHED: &str =
    "a caller waits to hold it exclusively, and is not in line: the nodes keep no name of it";

const fn state(is_held: Option<bool>) -> &'static str {
    match is_held {
        Some(true) => "held",
        Some(false) => "free",
        None => "unknown",
    }
}
