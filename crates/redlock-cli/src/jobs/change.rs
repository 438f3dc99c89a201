//! The verbs that pause, resume and forget a job.

use redlock_cron::{
    ControlError, ControlErrorKind, InUse, JobMemory, dangerous_forget, pause, resume,
};
use serde_json::json;

use super::{JobName, client, is_empty, known, lines, remembered};
use crate::{
    connection::ConnectionArgs,
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    output::LineMark,
};

/// The arguments of `jobs pause` and `jobs resume`.
#[derive(clap::Args, Debug)]
pub(super) struct PauseArgs {
    /// The job: the namespace of its scheduler, a slash, and its name
    #[arg(value_name = "NAMESPACE/NAME")]
    job: String,

    /// Acts even if the nodes remember no such job, for example before its first tick
    #[arg(long)]
    unseen: bool,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The arguments of `jobs forget`.
#[derive(clap::Args, Debug)]
pub(super) struct ForgetArgs {
    /// The job: the namespace of its scheduler, a slash, and its name
    #[arg(value_name = "NAMESPACE/NAME")]
    job: String,

    /// Does not ask for confirmation
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Pauses or resumes a job.
pub(super) async fn set_paused(
    args: PauseArgs,
    paused: bool,
    context: &CommandContext,
) -> CommandResult {
    let settings = args.connection.settings().await?;
    let job: JobName = args.job.parse()?;
    let client = client(context, &settings).await?;
    let memory = known(&client, &job, args.unseen).await?;
    let done = if paused {
        pause(&client, &job.namespace, &job.name).await
    } else {
        resume(&client, &job.namespace, &job.name).await
    };
    done.map_err(|error| failed(&error, ""))?;
    let output = context.output;
    if output.is_json() {
        output.json(&json!({"paused": paused}))?;
        return Ok(Exit::Yes);
    }
    let line = match (paused, memory.running()) {
        (true, Some(run)) => {
            let replica = run.replica();
            format!("{job} is paused; the run on {replica} goes on to its end")
        }
        (true, None) => {
            format!("{job} is paused: ticks that come are recorded, and not made up for")
        }
        (false, _) => format!("{job} is resumed: it is started from its next tick on"),
    };
    output.marked(LineMark::Good, &line)?;
    Ok(Exit::Yes)
}

/// Says what the user loses, asks for confirmation, and deletes what the nodes remember of a job.
pub(super) async fn forget(args: ForgetArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let output = context.output;
    let job: JobName = args.job.parse()?;
    let client = client(context, &settings).await?;
    let memory = remembered(&client, &job).await?;
    check(&memory, &job)?;
    // A job that never ran leaves only entries such as an ended pause: the command deletes them without a question.
    let is_nothing_lost = is_empty(&memory);
    let shown = broken(&job, &memory);
    if !is_nothing_lost {
        output.progress(&shown);
    }
    if !args.yes && !is_nothing_lost {
        if !output.is_confirmed("Type yes to forget it:").await? {
            return Err(CommandError::wrong(
                "nothing was done; --yes does it without asking",
            ));
        }
        let memory = remembered(&client, &job).await?;
        check(&memory, &job)?;
        if broken(&job, &memory) != shown {
            return Err(CommandError::wrong(
                "nothing was done: it is not as it was shown any more; look again",
            ));
        }
    }
    let done = dangerous_forget(&client, &job.namespace, &job.name).await;
    let done = done.map_err(|error| failed(&error, "nothing was done: "))?;
    let (mut forgotten, mut unknown) = (Vec::new(), Vec::new());
    for node in done.nodes() {
        match node.why_not() {
            None => forgotten.push(node.node()),
            Some(why) => {
                unknown.push(node.node());
                if !output.is_json() {
                    let line = format!("{} may still remember it: {why}", node.node());
                    output.marked(LineMark::Bad, &line)?;
                }
            }
        }
    }
    let is_whole = unknown.is_empty();
    if is_nothing_lost && !done.was_anything() && is_whole {
        if output.is_json() {
            forgotten.clear();
            output.json(&json!({"forgotten": forgotten, "unknown": unknown}))?;
        } else {
            output.line(&format!("nothing is remembered of {job}"))?;
        }
        return Ok(Exit::No);
    }
    if output.is_json() {
        output.json(&json!({"forgotten": forgotten, "unknown": unknown}))?;
    } else {
        for node in forgotten {
            output.marked(LineMark::Good, &format!("{node} remembers nothing of it"))?;
        }
        if !is_whole {
            output.line("do it again when all nodes can be asked: one that remembers tells the others' clients")?;
        }
    }
    Ok(if is_whole { Exit::Yes } else { Exit::Wrong })
}

/// Refuses to forget a job that is in use, as the library does, before the command asks for confirmation.
fn check(memory: &JobMemory, job: &JobName) -> Result<(), CommandError> {
    let Some(why) = memory.in_use() else {
        return Ok(());
    };
    Err(match why {
        InUse::Unknown => {
            let nodes = lines(memory.nodes());
            CommandError::NoQuorum(format!("nothing was done: {why}{nodes}"))
        }
        _ => CommandError::wrong(format!(
            "nothing was done: {why}; redlock jobs pause {job}, and wait until it is over"
        )),
    })
}

/// Returns in words what the user loses with the memory of a job.
fn broken(job: &JobName, memory: &JobMemory) -> String {
    let tick = memory.watermark().map_or_else(String::new, |tick| {
        format!(
            ", and its tick of {} may be started a second time while its window is open",
            tick.to_rfc3339()
        )
    });
    let pause = if memory.is_paused() == Some(true) {
        "; it is paused, and would not be any more"
    } else {
        ""
    };
    format!(
        "{job}: its {} last runs are forgotten{tick}{pause}; take it out of all schedulers before, or it is remembered anew",
        memory.runs().len()
    )
}

/// Returns why nothing was done to a job, or why that is not known.
pub(super) fn failed(error: &ControlError, lead: &str) -> CommandError {
    let message = format!("{lead}{error}");
    match error.kind() {
        ControlErrorKind::Unconfirmed => CommandError::NoQuorum(message),
        _ => CommandError::wrong(message),
    }
}
