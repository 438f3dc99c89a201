//! The deletion of the nodes' memory of a job.

use redlock_cron::{ControlErrorKind, InUse, dangerous_forget};
use serde::Serialize;

use super::{Job, Memory, client, lines};
use crate::{
    confirm::is_confirmed,
    connection::Connection,
    context::Context,
    exit::{Exit, Failure},
    output::Mark,
    policy,
};

/// The arguments of `jobs forget`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The job: the namespace of its scheduler, a slash, and its name
    #[arg(value_name = "NAMESPACE/NAME")]
    job: String,

    /// Does not ask for confirmation
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Serialize)]
struct Json<'a> {
    /// The nodes that no longer remember the job.
    forgotten: Vec<&'a str>,
    /// The nodes that may still remember it, because they could not be asked.
    unknown: Vec<&'a str>,
}

/// Says what the user loses, asks for confirmation, and deletes what the nodes remember of a job.
pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let settings = policy::settings(&args.connection).await?;
    let output = context.output;
    let job: Job = args.job.parse()?;
    let client = client(context, &settings).await?;
    let memory = Memory::of(&client, &job).await?;
    check(&memory, &job)?;
    // A job that never ran leaves only entries such as an ended pause: the command deletes them without a question.
    let is_nothing_lost = memory.is_empty();
    let shown = broken(&job, &memory);
    if !is_nothing_lost {
        output.progress(&shown);
    }
    if !args.yes && !is_nothing_lost {
        if !is_confirmed("Type yes to forget it:", output).await? {
            return Err(Failure::wrong(
                "nothing was done; --yes does it without asking",
            ));
        }
        let memory = Memory::of(&client, &job).await?;
        check(&memory, &job)?;
        if broken(&job, &memory) != shown {
            return Err(Failure::wrong(
                "nothing was done: it is not as it was shown any more; look again",
            ));
        }
    }
    let done = dangerous_forget(&client, &job.namespace, &job.name).await;
    let done = done.map_err(|error| match error.kind() {
        ControlErrorKind::Unconfirmed => Failure::NoQuorum(format!("nothing was done: {error}")),
        _ => Failure::wrong(format!("nothing was done: {error}")),
    })?;
    let (mut forgotten, mut unknown) = (Vec::new(), Vec::new());
    for node in done.nodes() {
        match node.why_not() {
            None => forgotten.push(node.node()),
            Some(why) => {
                unknown.push(node.node());
                if !output.is_json() {
                    let line = format!("{} may still remember it: {why}", node.node());
                    output.marked(Mark::Bad, &line)?;
                }
            }
        }
    }
    let is_whole = unknown.is_empty();
    if is_nothing_lost && !done.was_anything() && is_whole {
        if output.is_json() {
            forgotten.clear();
            output.json(&Json { forgotten, unknown })?;
        } else {
            output.line(&format!("nothing is remembered of {job}"))?;
        }
        return Ok(Exit::No);
    }
    if output.is_json() {
        output.json(&Json { forgotten, unknown })?;
    } else {
        for node in forgotten {
            output.marked(Mark::Good, &format!("{node} remembers nothing of it"))?;
        }
        if !is_whole {
            output.line("do it again when all nodes can be asked: one that remembers tells the others' clients")?;
        }
    }
    Ok(if is_whole { Exit::Yes } else { Exit::Wrong })
}

/// Refuses to forget a job that is in use, as the library does, before the command asks for confirmation.
fn check(memory: &Memory, job: &Job) -> Result<(), Failure> {
    let Some(why) = memory.0.in_use() else {
        return Ok(());
    };
    Err(match why {
        InUse::Unknown => {
            let nodes = lines(memory.0.nodes());
            Failure::NoQuorum(format!("nothing was done: {why}{nodes}"))
        }
        _ => Failure::wrong(format!(
            "nothing was done: {why}; redlock jobs pause {job}, and wait until it is over"
        )),
    })
}

/// Returns in words what the user loses with the memory of a job.
fn broken(job: &Job, memory: &Memory) -> String {
    let tick = memory.0.watermark().map_or_else(String::new, |tick| {
        format!(
            ", and its tick of {} may be started a second time while its window is open",
            tick.to_rfc3339()
        )
    });
    let pause = if memory.0.is_paused() == Some(true) {
        "; it is paused, and would not be any more"
    } else {
        ""
    };
    format!(
        "{job}: its {} last runs are forgotten{tick}{pause}; take it out of all schedulers before, or it is remembered anew",
        memory.0.runs().len()
    )
}
