//! `redlock ls`: which keys are held.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use redlock_core::deadpool_redis::redis::RedisError;
use serde::Serialize;

use crate::{
    connection::{Connection, Settings},
    context::Context,
    exit::{Exit, Failure},
    lookup::{self, KeyState, Owner},
    namespaces,
    output::{Mark, millis, printable, rounded},
    policy,
    probe::{self, Place, Probe, Scan, may_not_scan},
    status::holder,
};

/// The arguments of `ls`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The beginning of the resources' names
    #[arg(default_value = "")]
    prefix: String,

    #[command(flatten)]
    connection: Connection,
}

/// Lists the keys that nodes have; it scans, for which a user needs `+scan` beside what a client needs.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let settings = policy::settings(&args.connection).await?;
    let places = probe::connect(&settings).await;
    let Listed { lines, silent } = list(&places, &settings, &args.prefix).await;
    let output = context.output;
    let majority = settings.majority();
    let answered = places.len() - silent.len();
    if output.is_json() {
        output.json(&lines)?;
    } else {
        for line in &lines {
            let left = line.left.map_or_else(
                || "for ever".to_owned(),
                |left| format!("for {}", rounded(left)),
            );
            let few = if line.votes < majority {
                ", no majority"
            } else {
                ""
            };
            let text = format!(
                "{}  {} of {} nodes{few}, {left}, {}",
                printable(&line.key),
                line.votes,
                places.len(),
                line.shown
            );
            output.line(&text)?;
        }
    }
    if lines.is_empty()
        && let Some(why) = nothing(&places, &settings).await
    {
        output.progress(&why);
    }
    for (node, why) in silent {
        if output.is_json() {
            output.complain(&format!("{node}: {why}"))?;
        } else {
            output.marked(Mark::Bad, &format!("{node} {why}"))?;
        }
    }
    Ok(if answered < majority {
        Exit::NoQuorum
    } else {
        Exit::Yes
    })
}

/// Says that no key is held, and whether the nodes know the namespace at all; `None` if none of them answers.
async fn nothing(places: &[Place], settings: &Settings) -> Option<String> {
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

/// The keys that nodes have.
pub(crate) struct Listed {
    pub(crate) lines: Vec<Line>,
    /// The nodes that did not say, and why.
    pub(crate) silent: Vec<(Arc<str>, String)>,
}

/// Asks all nodes at once which keys they have.
pub(crate) async fn list(places: &[Place], settings: &Settings, prefix: &str) -> Listed {
    let all = places.iter().map(|place| on_node(place, settings, prefix));
    let found = join_all(all).await;
    let mut locks: BTreeMap<String, Vec<(Owner, Option<Duration>)>> = BTreeMap::new();
    let mut silent = Vec::new();
    for (place, found) in places.iter().zip(found) {
        match found {
            Ok(keys) => {
                for (name, owner, left) in keys {
                    locks.entry(name).or_default().push((owner, left));
                }
            }
            Err(why) => silent.push((Arc::clone(&place.name), why)),
        }
    }
    for said in locks.values_mut() {
        lookup::unite(said.iter_mut().map(|(owner, _)| owner).collect());
    }
    let majority = settings.majority();
    let lines = locks
        .into_iter()
        .map(|(key, said)| Line::of(key, &said, majority));
    Listed {
        lines: lines.collect(),
        silent,
    }
}

/// A key that some node has.
#[derive(Clone, Serialize)]
pub(crate) struct Line {
    pub(crate) key: String,
    holder: Option<String>,
    pub(crate) votes: usize,
    pub(crate) held: bool,
    /// Since 1970, by the holder's clock.
    held_since_ms: Option<f64>,
    remaining_ms: Option<f64>,
    /// The holder, in words.
    #[serde(skip)]
    pub(crate) shown: String,
    #[serde(skip)]
    pub(crate) left: Option<Duration>,
    /// The owner on the most nodes; never shown.
    #[serde(skip)]
    pub(crate) owner: Option<Owner>,
}

impl Line {
    fn of(key: String, said: &[(Owner, Option<Duration>)], majority: usize) -> Self {
        let count = |owner: &Owner| said.iter().filter(|(its, _)| its == owner).count();
        let first = said
            .iter()
            .map(|(owner, _)| owner)
            .max_by_key(|owner| count(owner));
        let votes = first.map_or(0, count);
        let times = said.iter().filter(|(its, _)| Some(its) == first);
        let times: Option<Vec<Duration>> = times.map(|(_, left)| *left).collect();
        let left = times.and_then(|times| times.into_iter().max());
        Self {
            key,
            holder: first.and_then(Owner::shown),
            votes,
            held: votes >= majority,
            held_since_ms: first.and_then(Owner::since).map(millis),
            remaining_ms: left.map(millis),
            shown: holder(first),
            left,
            owner: first.cloned(),
        }
    }
}

type Found = Vec<(String, Owner, Option<Duration>)>;

async fn on_node(place: &Place, settings: &Settings, prefix: &str) -> Result<Found, String> {
    let mut probe = place.probe.clone()?;
    let mut found = Vec::new();
    for key in scan(&mut probe, settings).await? {
        let Some(name) = settings.keys.resource(&key) else {
            continue;
        };
        if !name.starts_with(prefix) {
            continue;
        }
        if let KeyState::Held(owner, left) = lookup::state(&mut probe, &key).await {
            found.push((name, owner, left));
        }
    }
    Ok(found)
}

async fn scan(probe: &mut Probe, settings: &Settings) -> Result<Vec<String>, String> {
    let mut scan = Scan::new(Some(settings.keys.pattern()));
    let mut keys = Vec::new();
    let refused = |error: RedisError| may_not_scan(&error, "ls");
    while let Some(some) = scan.next(probe).await.map_err(refused)? {
        keys.extend(some.into_iter().flatten());
    }
    // A scan may tell of a key twice.
    keys.sort();
    keys.dedup();
    Ok(keys)
}
