//! `redlock release`: takes a key away from its holder.

use std::time::Duration;

use redlock_core::ResourceKey;
use serde::Serialize;

use crate::{
    connection::Connection,
    context::Context,
    exit::{Exit, Failure},
    lookup::{self, KeyState, Owner},
    output::{Mark, rounded},
    probe,
    status::holder,
};

/// What can be asked of `release`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The resource, as the application calls it
    key: String,

    /// Takes it away, though its holder may go on
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    connection: Connection,
}

/// Reads the owner, says what is broken, and deletes the key where that owner still has it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let settings = args.connection.settings()?;
    let key: ResourceKey = args.key.parse().map_err(Failure::from)?;
    let key = settings.keys.lock(&key)?;
    let places = probe::connect(&settings).await;
    let said = lookup::ask(&places, &key).await;
    let output = context.output;

    let mut owners: Vec<(&Owner, usize, Option<Duration>)> = Vec::new();
    for said in &said {
        let KeyState::Held(owner, left) = &said.state else {
            continue;
        };
        let left = left.unwrap_or(Duration::MAX);
        match owners.iter_mut().find(|(known, ..)| *known == owner) {
            Some((_, nodes, most)) => {
                *nodes += 1;
                *most = (*most).max(Some(left));
            }
            None => owners.push((owner, 1, Some(left))),
        }
    }
    let unknown = said
        .iter()
        .filter(|said| matches!(said.state, KeyState::Unknown(_)));
    let unknown = unknown.count();
    if owners.is_empty() {
        if said.len() - unknown < settings.majority() {
            return Err(Failure::NoQuorum(
                "too few nodes answer to say whether it is held".to_owned(),
            ));
        }
        if output.is_json() {
            output.json(&Json {
                held: false,
                released: 0,
                unknown,
            })?;
        } else {
            output.line("nobody has it: there is nothing to release")?;
        }
        return Ok(Exit::No);
    }
    for (owner, nodes, left) in &owners {
        let left = match left {
            Some(left) if *left < Duration::MAX => format!("for {}", rounded(*left)),
            _ => "for ever".to_owned(),
        };
        output.progress(&format!(
            "held by {} on {nodes} of {} nodes {left}",
            holder(Some(owner)),
            said.len()
        ));
    }
    output.progress(
        "whoever holds it is not told: it may go on until its lease ends, or its next renewal fails, while another \
         holds the key already; be sure that it has stopped",
    );
    if !args.force {
        return Err(Failure::wrong("nothing was released; --force releases it"));
    }

    let mut released = 0;
    for (place, said) in places.iter().zip(&said) {
        let (KeyState::Held(owner, _), Ok(probe)) = (&said.state, &place.probe) else {
            continue;
        };
        let node = &place.name;
        let done = lookup::take_away(&mut probe.clone(), &key, owner).await;
        released += usize::from(matches!(done, Ok(true)));
        if output.is_json() {
            continue;
        }
        match done {
            Ok(true) => output.marked(Mark::Good, &format!("{node} released"))?,
            Ok(false) => {
                let line = format!("{node} has another owner by now, or none: nothing was done");
                output.marked(Mark::Note, &line)?;
            }
            Err(why) => output.marked(Mark::Bad, &format!("{node} {why}"))?,
        }
    }
    if output.is_json() {
        output.json(&Json {
            held: true,
            released,
            unknown,
        })?;
    }
    let kept = owners.iter().map(|(_, nodes, _)| nodes).sum::<usize>() - released;
    Ok(if kept + unknown >= settings.majority() {
        Exit::NoQuorum
    } else {
        Exit::Yes
    })
}

#[derive(Serialize)]
struct Json {
    held: bool,
    released: usize,
    unknown: usize,
}
