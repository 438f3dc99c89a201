//! The verbs that pause, resume, stop and forget a job.

use redlock_cron::{
    ControlError, ControlErrorKind, InUse, JobMemory, cancel_backfill,
    chrono::{DateTime, Utc},
    dangerous_forget, pause_with, resume_with, stop,
};
use serde_json::json;

use redlock_console::look::jobs::{paused_before, was_not_paused};

use super::{JobName, client, is_empty, known, lines, list, remembered};
use crate::{
    clock::instant,
    connection::ConnectionArgs,
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    operator::OperatorArgs,
    output::LineMark,
};

/// The arguments of `jobs stop` and `jobs cancel`.
#[derive(clap::Args, Debug)]
pub(super) struct StopArgs {
    /// The job: the namespace of its scheduler, a slash, and its name
    #[arg(value_name = "NAMESPACE/NAME")]
    job: String,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The arguments of `jobs pause`.
#[derive(clap::Args, Debug)]
pub(super) struct PauseArgs {
    #[command(flatten)]
    switched: SwitchArgs,

    /// The end of the pause, such as 2026-11-01T02:00:00Z, or 2026-11-01 for midnight in UTC [default: none]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<DateTime<Utc>>,
}

/// The arguments of `jobs resume`.
#[derive(clap::Args, Debug)]
pub(super) struct SwitchArgs {
    /// The job: the namespace of its scheduler, a slash, and its name; with a * at the end, all known jobs that begin so
    #[arg(value_name = "NAMESPACE/NAME")]
    job: String,

    #[command(flatten)]
    operator: OperatorArgs,

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
    operator: OperatorArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Keeps all replicas from starting a job, or several.
pub(super) async fn pause(args: PauseArgs, context: &CommandContext) -> CommandResult {
    let PauseArgs { switched, until } = args;
    set_paused(switched, true, until, context).await
}

/// Lets all replicas start a job again, or several.
pub(super) async fn resume(args: SwitchArgs, context: &CommandContext) -> CommandResult {
    set_paused(args, false, None, context).await
}

async fn set_paused(
    args: SwitchArgs,
    paused: bool,
    until: Option<DateTime<Utc>>,
    context: &CommandContext,
) -> CommandResult {
    let settings = args.connection.settings().await?;
    let action = match until {
        Some(until) => args.operator.action().until(until),
        None => args.operator.action(),
    };
    let client = client(context, &settings).await?;
    let prefix = args.job.strip_suffix('*');
    let is_several = prefix.is_some();
    let jobs = match prefix {
        Some(prefix) => list::beginning_with(prefix, &client, &settings, context).await?,
        None => {
            let job: JobName = args.job.parse()?;
            let memory = known(&client, &job).await?;
            vec![(job, memory)]
        }
    };
    let output = context.output;
    let mut names = Vec::new();
    for (job, memory) in jobs {
        let (namespace, name) = (&job.namespace, &job.name);
        names.push(job.to_string());
        if let Some(why) = was_not_paused(&job, &memory).filter(|_| !paused) {
            if !output.is_json() {
                output.marked(LineMark::Note, &why)?;
            }
            continue;
        }
        let done = if paused {
            pause_with(&client, namespace, name, &action).await
        } else {
            resume_with(&client, namespace, name, &action).await
        };
        done.map_err(|error| failed(&error, ""))?;
        if output.is_json() {
            continue;
        }
        let before = paused_before(&memory);
        let line = match (paused, memory.running()) {
            (true, Some(run)) => {
                let replica = run.replica();
                format!(
                    "{job} is paused; the run on {replica} goes on to its end, or until redlock jobs stop {job}{before}"
                )
            }
            (true, None) => {
                format!(
                    "{job} is paused: its ticks are recorded as paused, and are not run later{before}"
                )
            }
            (false, _) => format!("{job} is resumed: it is started from its next tick on"),
        };
        output.marked(LineMark::Good, &line)?;
    }
    if output.is_json() {
        output.json(&match is_several {
            true => json!({"paused": paused, "jobs": names}),
            false => json!({"paused": paused}),
        })?;
    }
    Ok(Exit::Yes)
}

/// Asks the runs of a job that go on to end.
pub(super) async fn stop_runs(args: StopArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let job: JobName = args.job.parse()?;
    let client = client(context, &settings).await?;
    let memory = known(&client, &job).await?;
    let action = args.operator.action();
    let done = stop(&client, &job.namespace, &job.name, &action).await;
    done.map_err(|error| failed(&error, ""))?;
    let output = context.output;
    let replica = memory.running().map(|run| run.replica());
    if output.is_json() {
        output.json(&json!({"asked": true, "running_on": replica}))?;
        return Ok(Exit::Yes);
    }
    let line = match replica {
        Some(replica) => format!(
            "the runs of {job} are asked to end, such as that on {replica}; they are dropped within five seconds"
        ),
        None => format!("the runs of {job} are asked to end, but none is known"),
    };
    output.marked(LineMark::Good, &line)?;
    Ok(Exit::Yes)
}

/// Ends the backfill of a job.
pub(super) async fn cancel(args: StopArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let job: JobName = args.job.parse()?;
    let client = client(context, &settings).await?;
    let memory = known(&client, &job).await?;
    let action = args.operator.action();
    let done = cancel_backfill(&client, &job.namespace, &job.name, &action).await;
    done.map_err(|error| failed(&error, ""))?;
    let output = context.output;
    let begun = memory.backfill().map(|backfill| backfill.runs().len());
    if output.is_json() {
        output.json(&json!({"cancelled": true, "begun": begun}))?;
        return Ok(Exit::Yes);
    }
    let line = match memory.backfill() {
        Some(backfill) => format!(
            "no further tick of the backfill of {job} is started: {} of {} were claimed; redlock jobs stop {job} ends \
             a run that goes on",
            backfill.runs().len(),
            backfill.ticks()
        ),
        None => {
            format!("no backfill of {job} is known, and none that was requested before is begun")
        }
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
    if done.was_anything() {
        let what = ("forget", &*job.to_string());
        args.operator.log(&client, what, context).await;
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
        "{job}: its {} last runs are forgotten{tick}{pause}; take it out of all schedulers before, or the nodes remember it again",
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
