//! `redlock ls` and `redlock release`: which keys are held, and how one is taken away from its holder.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::future::join_all;
use redlock_console::{
    look::keys::{claims, list, release as release_key},
    snapshot::KeySnapshot,
};
use serde_json::json;

use crate::{
    clock::{lasting, millis},
    connection::{ConnectionArgs, NodeSettings},
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    lookup, namespaces,
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
    let (keys, silent) = list(&places, &settings, &args.prefix, usize::MAX).await;
    let output = context.output;
    let majority = settings.majority();
    if output.is_json() {
        let nodes = places.len();
        let keys = keys.iter();
        let keys = keys.map(|key| KeySnapshot::of(key, 0, nodes, usize::MAX));
        output.json(&keys.collect::<Vec<_>>())?;
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
    let names = known_namespaces(places).await?;
    let namespace = settings.namespace();
    let held = || format!("no such key is held in the namespace {namespace}");
    Some(unknown(&names, settings).unwrap_or_else(held))
}

/// Says that the nodes do not know the namespace; `None` if one does, or if none of them answers.
pub(crate) async fn unknown_namespace(
    places: &[ProbedNode],
    settings: &NodeSettings,
) -> Option<String> {
    unknown(&known_namespaces(places).await?, settings)
}

/// Returns the namespaces that the nodes know; `None` if none of them answers.
async fn known_namespaces(places: &[ProbedNode]) -> Option<BTreeSet<String>> {
    let marks = places.iter().map(|place| namespaces::on_node(place, "ls"));
    let marks: Vec<_> = join_all(marks).await.into_iter().flatten().collect();
    let names = || marks.iter().flat_map(BTreeMap::keys).cloned().collect();
    (!marks.is_empty()).then(names)
}

fn unknown(names: &BTreeSet<String>, settings: &NodeSettings) -> Option<String> {
    let (namespace, mark) = (settings.namespace(), settings.mark());
    if names.iter().any(|name| namespaces::mark_of(name) == mark) {
        return None;
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

    let done = release_key(&places, &keys, &said, settings.majority()).await;
    for (node, done) in done.nodes.iter().filter(|_| !output.is_json()) {
        match done {
            Ok(true) => output.marked(LineMark::Good, &format!("{node} released"))?,
            Ok(false) => {
                let line = format!("{node} has another owner by now, or none: nothing was done");
                output.marked(LineMark::Note, &line)?;
            }
            Err(why) => output.marked(LineMark::Bad, &format!("{node} {why}"))?,
        }
    }
    let released = done.count();
    if released > 0 {
        let what = ("release", &*args.key);
        args.operator.log_at(&settings, what, context).await;
    }
    if output.is_json() {
        output.json(&told(released))?;
    }
    Ok(Exit::of_quorum(done.is_free))
}
