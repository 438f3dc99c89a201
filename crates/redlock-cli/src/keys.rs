//! `redlock ls` and `redlock release`: which keys are held, and how one is taken away from its holder.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use redlock_proto::LineCaller;
use serde_json::{Value, json};

use crate::{
    clock::{lasting, millis},
    connection::{ConnectionArgs, NodeSettings},
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    lookup::line::Line,
    lookup::{self, KeyLook, KeyState, Owner},
    namespaces,
    operator::OperatorArgs,
    output::{LineMark, printable},
    probe::{self, ProbedNode},
};

/// The arguments of `ls`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// The beginning of the resources' names
    #[arg(default_value = "")]
    prefix: String,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The arguments of `release`.
#[derive(clap::Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// The resource, as the application names it
    key: String,

    /// Takes the key away, although its holder may still work
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Lists the keys that nodes have; it scans, for which a user needs `+scan` beside what a client needs.
pub(crate) async fn ls(args: ListArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let places = probe::connect(&settings).await;
    let (keys, silent) = list(&places, &settings, &args.prefix).await;
    let output = context.output;
    let majority = settings.majority();
    if output.is_json() {
        output.json(&keys.iter().map(HeldKey::to_json).collect::<Vec<_>>())?;
    } else {
        for key in &keys {
            let few = if key.votes < majority {
                ", no majority"
            } else {
                ""
            };
            let (name, votes, nodes) = (printable(&key.key), key.votes, places.len());
            let (left, holder) = (lasting(key.left), key.owner.holder());
            let line = format!("{name}  {votes} of {nodes} nodes{few}, {left}, {holder}");
            output.line(&line)?;
        }
    }
    if keys.is_empty()
        && let Some(why) = nothing(&places, &settings).await
    {
        output.progress(&why);
    }
    for (node, why) in &silent {
        output.bad_node(node, why)?;
    }
    let answered = places.len() - silent.len();
    Ok(match answered >= majority {
        true => Exit::Yes,
        false => exit_without_majority(&silent, "ls"),
    })
}

/// Returns the exit of a verb to which too few nodes have listed their keys: it is wrong if a right is missing.
pub(crate) fn exit_without_majority(silent: &[(Arc<str>, String)], verb: &str) -> Exit {
    let refused = probe::may_not_scan(verb);
    match silent.iter().any(|(_, why)| *why == refused) {
        true => Exit::Wrong,
        false => Exit::NoQuorum,
    }
}

/// Says that no key is held, and whether the nodes know the namespace at all; `None` if none of them answers.
async fn nothing(places: &[ProbedNode], settings: &NodeSettings) -> Option<String> {
    let marks = places.iter().map(|place| namespaces::on_node(place, "ls"));
    let marks: Vec<_> = join_all(marks).await.into_iter().flatten().collect();
    if marks.is_empty() {
        return None;
    }
    let names: BTreeSet<String> = marks.into_iter().flat_map(BTreeMap::into_keys).collect();
    let (namespace, mark) = (settings.namespace(), settings.mark());
    if names.iter().any(|name| namespaces::mark_of(name) == mark) {
        return Some(format!("no such key is held in the namespace {namespace}"));
    }
    let names: Vec<_> = names.iter().map(|name| printable(name)).collect();
    let known = match names.is_empty() {
        true => "no client has used them".to_owned(),
        false => format!("they know {}", names.join(", ")),
    };
    Some(format!(
        "the nodes do not know the namespace {namespace}: {known}"
    ))
}

/// The keys that nodes have, and the nodes that did not say, with the reason.
type KeyList = (Vec<HeldKey>, Vec<(Arc<str>, String)>);

/// Asks all nodes at once which keys they have.
pub(crate) async fn list(places: &[ProbedNode], settings: &NodeSettings, prefix: &str) -> KeyList {
    let all = places.iter().map(|place| on_node(place, prefix));
    let found = join_all(all).await;
    let mut locks: BTreeMap<String, Vec<KeyLook>> = BTreeMap::new();
    let mut silent = Vec::new();
    for (place, found) in places.iter().zip(found) {
        match found {
            Ok(keys) => {
                for (name, said) in keys {
                    locks.entry(name).or_default().push(said);
                }
            }
            Err(why) => silent.push((Arc::clone(&place.name), why)),
        }
    }
    for said in locks.values_mut() {
        lookup::unite(said);
    }
    let majority = settings.majority();
    let has_majority = places.len() - silent.len() >= majority;
    let held = locks.into_iter().filter_map(|(key, said)| {
        let line = has_majority.then(|| Line::of(&said, majority));
        Some(HeldKey {
            line,
            ..HeldKey::of(key, &said, majority)?
        })
    });
    (held.collect(), silent)
}

/// A key that some node has.
pub(crate) struct HeldKey {
    pub(crate) key: String,
    /// The owner on the most nodes.
    pub(crate) owner: Owner,
    /// The number of these nodes.
    pub(crate) votes: usize,
    is_held: bool,
    pub(crate) left: Option<Duration>,
    /// The callers in line; `None` if too few nodes have answered.
    pub(crate) line: Option<Line>,
}

impl HeldKey {
    /// Returns what nodes say of a key together; `None` if none has it.
    fn of(key: String, said: &[KeyLook], majority: usize) -> Option<Self> {
        let owned = said.iter().filter_map(|said| match &said.state {
            KeyState::Held(owner, left) => Some((owner, *left)),
            KeyState::Free | KeyState::Unknown(_) => None,
        });
        let owned: Vec<_> = owned.collect();
        let times_of = |owner: &Owner| -> Vec<Option<Duration>> {
            let of_owner = owned.iter().filter(|(its, _)| *its == owner);
            of_owner.map(|(_, left)| *left).collect()
        };
        let owners = owned.iter().map(|(owner, _)| *owner);
        let owner = owners.max_by_key(|owner| times_of(owner).len())?;
        let times = times_of(owner);
        let votes = times.len();
        let times: Option<Vec<Duration>> = times.into_iter().collect();
        Some(Self {
            key,
            owner: owner.clone(),
            votes,
            is_held: votes >= majority,
            left: times.and_then(|times| times.into_iter().max()),
            line: None,
        })
    }

    /// Returns the callers that are known to wait in line.
    pub(crate) fn in_line(&self) -> &[LineCaller] {
        self.line.as_ref().map_or(&[], Line::callers)
    }

    /// Returns it for programs.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "key": self.key,
            "holder": self.owner.shown(),
            "votes": self.votes,
            "held": self.is_held,
            // Since 1970, by the holder's clock.
            "held_since_ms": self.owner.since().map(millis),
            "remaining_ms": self.left.map(millis),
            "line": self.line.as_ref().map(Line::to_json),
        })
    }
}

/// Returns the resources whose keys one node has, with what it says of each.
async fn on_node(place: &ProbedNode, prefix: &str) -> Result<Vec<(String, KeyLook)>, String> {
    let mut probe = place.probe.clone()?;
    let mut found = Vec::new();
    for key in probe.keys(place.keys.pattern(), "ls").await? {
        let Some(name) = place.keys.resource(&key) else {
            continue;
        };
        if !name.starts_with(prefix) {
            continue;
        }
        let said = lookup::look(&mut probe, &place.keys, &key).await;
        if said.owner().is_some() {
            found.push((name, said));
        }
    }
    Ok(found)
}

/// Reads the owner, says what is broken, and deletes the key where that owner still has it.
pub(crate) async fn release(args: ReleaseArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let places = probe::connect(&settings).await;
    let (keys, said) = lookup::find(&places, &settings, &args.key).await?;
    let output = context.output;

    let claims = claims(&said);
    let unknown = said.iter().filter(|said| !said.is_known()).count();
    let told = |released: usize| {
        let holders = claims.iter().map(|(owner, nodes, left)| {
            let left = left.map(millis);
            json!({"holder": owner.shown(), "nodes": nodes, "remaining_ms": left})
        });
        json!({
            "held": !claims.is_empty(),
            // From which the key is taken away.
            "holders": holders.collect::<Vec<_>>(),
            "released": released,
            "unknown": unknown,
        })
    };
    if claims.is_empty() {
        if said.len() - unknown < settings.majority() {
            let why = "too few nodes answer to say whether it is held";
            return Err(CommandError::NoQuorum(why.to_owned()));
        }
        if output.is_json() {
            output.json(&told(0))?;
        } else {
            output.line("it has no holder: there is nothing to release")?;
        }
        return Ok(Exit::No);
    }
    for (owner, nodes, left) in &claims {
        let (holder, all, left) = (owner.holder(), said.len(), lasting(*left));
        output.progress(&format!(
            "held by {holder} on {nodes} of {all} nodes {left}"
        ));
    }
    output.progress(
        "whoever holds it is not told: it may go on until its lease ends, or its next renewal fails, while another \
         holds the key already; be sure that it has stopped",
    );
    if !args.force {
        if output.is_json() {
            output.json(&told(0))?;
        }
        return Err(CommandError::wrong(
            "nothing was released; --force releases it",
        ));
    }

    let mut released = 0;
    for ((place, key), said) in places.iter().zip(&keys).zip(&said) {
        let (Some(owner), Ok(probe)) = (said.owner(), &place.probe) else {
            continue;
        };
        let node = &place.name;
        let done = lookup::take_away(&mut probe.clone(), key, owner).await;
        released += usize::from(matches!(done, Ok(true)));
        if output.is_json() {
            continue;
        }
        match done {
            Ok(true) => output.marked(LineMark::Good, &format!("{node} released"))?,
            Ok(false) => {
                let line = format!("{node} has another owner by now, or none: nothing was done");
                output.marked(LineMark::Note, &line)?;
            }
            Err(why) => output.marked(LineMark::Bad, &format!("{node} {why}"))?,
        }
    }
    if released > 0 {
        let what = ("release", &*args.key);
        args.operator.log_at(&settings, what, context).await;
    }
    if output.is_json() {
        output.json(&told(released))?;
    }
    let kept = claims.iter().map(|(_, nodes, _)| nodes).sum::<usize>() - released;
    Ok(Exit::of_quorum(kept + unknown < settings.majority()))
}

/// Returns each owner of the key, on how many nodes it has the key, and for how long on the one where it lasts longest;
/// `None` if for ever.
fn claims(said: &[KeyLook]) -> Vec<(&Owner, usize, Option<Duration>)> {
    let mut claims: Vec<(&Owner, usize, Option<Duration>)> = Vec::new();
    for said in said {
        let KeyState::Held(owner, left) = &said.state else {
            continue;
        };
        match claims.iter_mut().find(|(known, ..)| *known == owner) {
            Some((_, nodes, longest)) => {
                *nodes += 1;
                *longest = longest.zip(*left).map(|(known, left)| known.max(left));
            }
            None => claims.push((owner, 1, *left)),
        }
    }
    claims
}
