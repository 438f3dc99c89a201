//! `redlock status`: the holder of a key, node by node.

use std::io;

use redlock_console::look::status::{KeyStatus, standing};

use crate::{
    clock::{lasting, rounded},
    connection::ConnectionArgs,
    context::CommandContext,
    exit::{CommandResult, Exit},
    lookup::{
        self, KeyState, Owner,
        line::{self, Line},
    },
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
            json["state"] =
                serde_json::to_value(standing(slots.is_held())).map_err(io::Error::other)?;
            json["slots"] = slots.0.iter().map(KeyStatus::to_json).collect();
        }
        context.output.json(&json)?;
    } else {
        match slots.0.is_empty() {
            true => print(&status, context.output)?,
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

/// Prints what all nodes together say, and each of them.
fn print(status: &KeyStatus<'_>, output: Output) -> io::Result<()> {
    output.line(&status.verdict())?;
    for (said, report) in &status.nodes {
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
    let is_wished_for = status.owner.is_some_and(Owner::is_wished_for);
    match &status.line {
        _ if is_wished_for => output.marked(LineMark::Note, WISHED),
        Some(line) => print_line(line, output),
        None => Ok(()),
    }
}

/// Prints the callers in line.
fn print_line(callers: &Line, output: Output) -> io::Result<()> {
    let waiting = match callers.callers().len() {
        0 => return output.marked(LineMark::Good, "no caller waits in line"),
        1 => "1 caller waits".to_owned(),
        count => format!("{count} callers wait"),
    };
    let longest = rounded(callers.longest().unwrap_or_default());
    let line = format!("{waiting} in line, the first for {longest}");
    output.marked(LineMark::Note, &line)?;
    for caller in callers.callers() {
        let (name, client, waited) = (
            line::label(caller),
            line::client(caller),
            rounded(caller.waited),
        );
        output.indented(&format!("{name} for {waited}, of client {client}"))?;
    }
    Ok(())
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
