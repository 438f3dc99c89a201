//! The verbs that pause and resume a job.

use redlock_cron::{ControlErrorKind, pause as pause_job, resume as resume_job};
use serde::Serialize;

use super::{Job, Memory, client};
use crate::{
    connection::Connection,
    context::Context,
    exit::{Exit, Failure},
    output::Mark,
    policy,
};

/// The arguments of both.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The job: the namespace of its scheduler, a slash, and its name
    #[arg(value_name = "NAMESPACE/NAME")]
    job: String,

    /// Acts even if the nodes remember no such job, for example before its first tick
    #[arg(long)]
    unseen: bool,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Serialize)]
struct Json {
    paused: bool,
}

pub(super) async fn pause(args: Args, context: &Context) -> Result<Exit, Failure> {
    set(args, true, context).await
}

pub(super) async fn resume(args: Args, context: &Context) -> Result<Exit, Failure> {
    set(args, false, context).await
}

async fn set(args: Args, paused: bool, context: &Context) -> Result<Exit, Failure> {
    let settings = policy::settings(&args.connection).await?;
    let job: Job = args.job.parse()?;
    let client = client(context, &settings).await?;
    // A user that mistypes a name must not believe that the job is paused.
    let memory = Memory::of(&client, &job).await?;
    if memory.0.is_known() && memory.is_empty() && !args.unseen {
        return Err(Failure::wrong(format!(
            "nothing was done: nothing is remembered of {job}; redlock jobs lists those that are known, and --unseen \
             does it all the same"
        )));
    }
    let done = if paused {
        pause_job(&client, &job.namespace, &job.name).await
    } else {
        resume_job(&client, &job.namespace, &job.name).await
    };
    done.map_err(|error| match error.kind() {
        ControlErrorKind::Unconfirmed => Failure::NoQuorum(error.to_string()),
        _ => Failure::wrong(error.to_string()),
    })?;
    let output = context.output;
    if output.is_json() {
        output.json(&Json { paused })?;
        return Ok(Exit::Yes);
    }
    let line = match (paused, memory.0.running()) {
        (true, Some(run)) => format!(
            "{job} is paused; the run on {} goes on to its end",
            run.replica()
        ),
        (true, None) => {
            format!("{job} is paused: ticks that come are recorded, and not made up for")
        }
        (false, _) => format!("{job} is resumed: it is started from its next tick on"),
    };
    output.marked(Mark::Good, &line)?;
    Ok(Exit::Yes)
}
