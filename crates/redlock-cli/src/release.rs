//! `redlock release`: takes a key away from its holder.

use std::time::Duration;

use serde::Serialize;

use crate::{
    connection::Connection,
    context::Context,
    exit::{Exit, Failure},
    lookup::{self, KeyState, Owner, Said},
    output::{Mark, millis, rounded},
    policy, probe,
    status::holder,
};

/// The arguments of `release`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The resource, as the application names it
    key: String,

    /// Takes the key away, although its holder may still work
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    connection: Connection,
}

/// Reads the owner, says what is broken, and deletes the key where that owner still has it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let settings = policy::settings(&args.connection).await?;
    let places = probe::connect(&settings).await;
    let (key, said) = lookup::find(&places, &settings, &args.key).await?;
    let output = context.output;

    let claims = claims(&said);
    let unknown = said
        .iter()
        .filter(|said| matches!(said.state, KeyState::Unknown(_)));
    let unknown = unknown.count();
    if claims.is_empty() {
        if said.len() - unknown < settings.majority() {
            return Err(Failure::NoQuorum(
                "too few nodes answer to say whether it is held".to_owned(),
            ));
        }
        if output.is_json() {
            output.json(&Json::new(&claims, 0, unknown))?;
        } else {
            output.line("nobody has it: there is nothing to release")?;
        }
        return Ok(Exit::No);
    }
    for claim in &claims {
        let left = claim.left.map_or_else(
            || "for ever".to_owned(),
            |left| format!("for {}", rounded(left)),
        );
        output.progress(&format!(
            "held by {} on {} of {} nodes {left}",
            holder(Some(claim.owner)),
            claim.nodes,
            said.len()
        ));
    }
    output.progress(
        "whoever holds it is not told: it may go on until its lease ends, or its next renewal fails, while another \
         holds the key already; be sure that it has stopped",
    );
    if !args.force {
        if output.is_json() {
            output.json(&Json::new(&claims, 0, unknown))?;
        }
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
        output.json(&Json::new(&claims, released, unknown))?;
    }
    let kept = claims.iter().map(|claim| claim.nodes).sum::<usize>() - released;
    Ok(if kept + unknown >= settings.majority() {
        Exit::NoQuorum
    } else {
        Exit::Yes
    })
}

/// What an owner has of the key.
struct Claim<'a> {
    owner: &'a Owner,
    /// On how many nodes.
    nodes: usize,
    /// For how long on the one where it lasts longest; `None` if for ever.
    left: Option<Duration>,
}

/// Returns what each owner has.
fn claims(said: &[Said]) -> Vec<Claim<'_>> {
    let mut claims: Vec<Claim<'_>> = Vec::new();
    for said in said {
        let KeyState::Held(owner, left) = &said.state else {
            continue;
        };
        match claims.iter_mut().find(|claim| claim.owner == owner) {
            Some(claim) => {
                claim.nodes += 1;
                claim.left = claim.left.zip(*left).map(|(known, left)| known.max(left));
            }
            None => claims.push(Claim {
                owner,
                nodes: 1,
                left: *left,
            }),
        }
    }
    claims
}

#[derive(Serialize)]
struct Json {
    held: bool,
    /// The holders from which the key is taken away.
    holders: Vec<Holder>,
    released: usize,
    unknown: usize,
}

#[derive(Serialize)]
struct Holder {
    holder: Option<String>,
    nodes: usize,
    remaining_ms: Option<f64>,
}

impl Json {
    fn new(claims: &[Claim<'_>], released: usize, unknown: usize) -> Self {
        let holder = |claim: &Claim<'_>| Holder {
            holder: claim.owner.shown(),
            nodes: claim.nodes,
            remaining_ms: claim.left.map(millis),
        };
        Self {
            held: !claims.is_empty(),
            holders: claims.iter().map(holder).collect(),
            released,
            unknown,
        }
    }
}
