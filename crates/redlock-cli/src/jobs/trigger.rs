//! `redlock jobs trigger`: asks all replicas for a run of a job, and follows it.

use std::time::Duration;

use redlock_core::Redlock;
use redlock_cron::{
    JobMemory, PastRun, REQUEST_LIFETIME,
    chrono::{DateTime, SecondsFormat, Utc},
    request_run,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    BETWEEN_LOOKS, JobName, change::failed, client, known, remembered, run_line, until_taken,
};
use crate::{
    clock::{millis, rounded},
    connection::ConnectionArgs,
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    operator::OperatorArgs,
    output::{LineMark, Output},
};

/// The arguments of `jobs trigger`.
#[derive(clap::Args, Debug)]
pub(super) struct TriggerArgs {
    /// The job: the namespace of its scheduler, a slash, and its name
    #[arg(value_name = "NAMESPACE/NAME")]
    job: String,

    /// Waits for the end of the run, whose outcome is the exit code
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// How far a run has come that was requested.
enum TriggerProgress {
    /// No replica has claimed it yet, or its end is not known yet.
    Pending,
    /// It was claimed, and perhaps ended.
    Claimed(PastRun),
    /// It has no recorded end, and no replica holds its lock.
    CutShort(PastRun),
}

/// Requests a run, and waits until a replica has started it, or until it has ended.
pub(super) async fn run(args: TriggerArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let job: JobName = args.job.parse()?;
    let client = client(context, &settings).await?;
    known(&client, &job).await?;
    let moment = request_run(&client, &job.namespace, &job.name).await;
    let moment = moment.map_err(|error| failed(&error, ""))?;
    let subject = job.to_string();
    args.operator
        .log(&client, ("trigger", &subject), context)
        .await;
    let asked = moment.to_rfc3339_opts(SecondsFormat::Millis, true);
    let output = context.output;
    let lifetime = rounded(REQUEST_LIFETIME);
    output.progress(&format!(
        "asked all replicas at {asked} for a run of {job}; one starts it within {lifetime}, or none does"
    ));
    let ended = |run: Option<&PastRun>, exit| {
        if output.is_json() {
            output.json(&to_json(&asked, run))?;
        }
        Ok(exit)
    };
    let claimed = |memory: &JobMemory| match progress(memory, moment) {
        TriggerProgress::Claimed(run) | TriggerProgress::CutShort(run) => Ok(Some(run)),
        TriggerProgress::Pending => Ok(None),
    };
    let Some(run) = until_taken(&client, &job, "started", claimed).await? else {
        if !output.is_json() {
            output.marked(LineMark::Bad, &format!(
                "no replica has started it within {lifetime}, and none starts it later: the log of the replicas tells \
                 why, under redlock::job, if one with this job is up"
            ))?;
        }
        return ended(None, Exit::No);
    };
    if run.outcome().is_none() && !args.wait {
        told(&run, LineMark::Good, "", output)?;
        return ended(Some(&run), Exit::Yes);
    }
    if run.outcome().is_none() {
        output.progress(&format!("{} has started it", run.replica()));
    }
    let (run, is_cut_short) = until_ended(&client, &job, run).await?;
    let (mark, note, exit) = match run.outcome() {
        _ if is_cut_short => (
            LineMark::Bad,
            "; its replica has lost it, so it was cut short",
            Exit::Wrong,
        ),
        Some("ok") => (LineMark::Good, "", Exit::Yes),
        Some("overlapping") => (LineMark::Warning, "", Exit::No),
        _ => (LineMark::Bad, "", Exit::Wrong),
    };
    told(&run, mark, note, output)?;
    ended(Some(&run), exit)
}

fn told(run: &PastRun, mark: LineMark, note: &str, output: Output) -> std::io::Result<()> {
    if output.is_json() {
        return Ok(());
    }
    let line = match run.outcome() {
        None if note.is_empty() => format!("{} has started it", run.replica()),
        _ => format!("{}{note}", run_line(run)),
    };
    output.marked(mark, &line)
}

/// Waits until the run has ended, or was cut short.
async fn until_ended(
    client: &Redlock,
    job: &JobName,
    run: PastRun,
) -> Result<(PastRun, bool), CommandError> {
    if run.outcome().is_some() {
        return Ok((run, false));
    }
    loop {
        sleep(BETWEEN_LOOKS).await;
        let memory = remembered(client, job).await?;
        match progress(&memory, run.tick()) {
            TriggerProgress::Claimed(run) if run.outcome().is_some() => return Ok((run, false)),
            TriggerProgress::CutShort(run) => return Ok((run, true)),
            // A hundred later requests have taken its place.
            TriggerProgress::Pending if memory.is_known() => {
                let why =
                    "the nodes no longer remember the run: too many others were requested since";
                return Err(CommandError::wrong(why));
            }
            TriggerProgress::Claimed(_) | TriggerProgress::Pending => {}
        }
    }
}

fn progress(memory: &JobMemory, moment: DateTime<Utc>) -> TriggerProgress {
    let Some(run) = memory.requested(moment).cloned() else {
        return TriggerProgress::Pending;
    };
    let may_go_on = memory.running().is_some() || memory.free_in() != Some(Duration::ZERO);
    if run.outcome().is_none() && memory.is_known() && !may_go_on {
        TriggerProgress::CutShort(run)
    } else {
        TriggerProgress::Claimed(run)
    }
}

fn to_json(asked: &str, run: Option<&PastRun>) -> Value {
    json!({
        "asked": asked,
        "replica": run.map(PastRun::replica),
        "outcome": run.and_then(PastRun::outcome),
        "took_ms": run.and_then(PastRun::took).map(millis),
    })
}
