//! `redlock jobs`: what the nodes remember of jobs, and what a person does to one, without running it.

mod backfill;
mod change;
mod list;
mod trigger;

use std::time::Duration;

use clap::Subcommand;
use redlock_console::look::jobs::{self as look, JobName};
use redlock_core::Redlock;
use redlock_cron::{
    JobMemory, PastRun, REQUEST_LIFETIME,
    chrono::{DateTime, SecondsFormat, Utc},
};
use tokio::time::{Instant, sleep};

use crate::{
    connection::ConnectionArgs,
    context::CommandContext,
    exit::{CommandError, CommandResult},
    nodes::{client, lines},
};

/// The arguments of `jobs`.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct JobsArgs {
    /// The job: the namespace of its scheduler, a slash, and its name; without it, all jobs
    #[arg(value_name = "NAMESPACE/NAME")]
    job: Option<String>,

    #[command(flatten)]
    connection: ConnectionArgs,

    #[command(subcommand)]
    action: Option<JobsVerb>,
}

/// What is done to a job.
#[derive(Debug, Subcommand)]
enum JobsVerb {
    /// Keeps all replicas from starting a job
    #[command(
        after_help = "Example:\n  redlock jobs pause billing/close-day --reason 'the ledger moves' --until 2026-11-01T06:00:00Z"
    )]
    Pause(change::PauseArgs),
    /// Lets all replicas start a job again
    #[command(after_help = "Example:\n  redlock jobs resume billing/close-day")]
    Resume(change::SwitchArgs),
    /// Asks all replicas for a run of a job, which one of them starts
    #[command(after_help = "Example:\n  redlock jobs trigger billing/close-day --wait")]
    Trigger(trigger::TriggerArgs),
    /// Asks all replicas to run the ticks of a range again, or for the first time, such as those of an outage
    #[command(
        after_help = "Example:\n  redlock jobs backfill billing/close-day --from 2026-11-01T00:00:00Z --to 2026-11-03T00:00:00Z --wait"
    )]
    Backfill(backfill::BackfillArgs),
    /// Asks the runs of a job that go on to end, on whichever replica they are
    #[command(
        after_help = "Example:\n  redlock jobs stop billing/close-day --reason 'it reads the wrong ledger'"
    )]
    Stop(change::StopArgs),
    /// Ends the backfill of a job: no further tick of it is started
    #[command(after_help = "Example:\n  redlock jobs cancel billing/close-day")]
    Cancel(change::StopArgs),
    /// Deletes what the nodes remember of a job that no scheduler has any more
    #[command(after_help = "Example:\n  redlock jobs forget billing/close-day")]
    Forget(change::ForgetArgs),
}

/// Shows a job, or all of them, or does something to one.
pub(crate) async fn run(args: JobsArgs, context: &CommandContext) -> CommandResult {
    match args.action {
        Some(JobsVerb::Pause(args)) => change::pause(args, context).await,
        Some(JobsVerb::Resume(args)) => change::resume(args, context).await,
        Some(JobsVerb::Stop(args)) => change::stop_runs(args, context).await,
        Some(JobsVerb::Cancel(args)) => change::cancel(args, context).await,
        Some(JobsVerb::Trigger(args)) => trigger::run(args, context).await,
        Some(JobsVerb::Backfill(args)) => backfill::run(args, context).await,
        Some(JobsVerb::Forget(args)) => change::forget(args, context).await,
        None => {
            let settings = args.connection.settings().await?;
            match args.job {
                Some(job) => list::show(&job.parse()?, &settings, context).await,
                None => list::run(&settings, context).await,
            }
        }
    }
}

/// Asks the nodes what they remember of a job.
async fn remembered(client: &Redlock, job: &JobName) -> Result<JobMemory, CommandError> {
    let memory = look::remembered(client, job).await;
    memory.map_err(|error| CommandError::wrong(error.to_string()))
}

/// Waits until a replica has taken a request, by what `taken` finds in the nodes' memory; `None` if none has in time.
///
/// `verb` says what a replica does with it, for an error.
async fn until_taken<T>(
    client: &Redlock,
    job: &JobName,
    verb: &str,
    taken: impl Fn(&JobMemory) -> Result<Option<T>, CommandError>,
) -> Result<Option<T>, CommandError> {
    // The nodes' clocks decide, and a replica that skips the request at its end takes a while to say so.
    let end = Instant::now() + REQUEST_LIFETIME + LATEST;
    loop {
        let memory = remembered(client, job).await?;
        if let Some(taken) = taken(&memory)? {
            return Ok(Some(taken));
        }
        if Instant::now() < end {
            sleep(BETWEEN_LOOKS).await;
        } else if memory.is_known() {
            return Ok(None);
        } else {
            let nodes = lines(memory.nodes());
            let why = format!("too few nodes say whether a replica has {verb} it{nodes}");
            return Err(CommandError::NoQuorum(why));
        }
    }
}

/// Returns what the nodes remember of a job; an error if that is nothing.
///
/// A user that mistypes a name must not believe that something was done, or wait for a job that there is not.
async fn known(client: &Redlock, job: &JobName) -> Result<JobMemory, CommandError> {
    look::known(client, job).await.map_err(CommandError::wrong)
}

/// Returns whether a job never ran and is not paused, as far as nodes have answered.
fn is_empty(memory: &JobMemory) -> bool {
    let never_ran = memory.watermark().is_none() && memory.runs().is_empty();
    never_ran && memory.is_paused() != Some(true)
}

/// Returns an instant in a line.
fn time(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Returns a run in a line.
fn run_line(run: &PastRun) -> String {
    let line = run.to_string();
    // The nodes remember how long a run took to the millisecond.
    match line.strip_suffix(" after 0 s") {
        Some(line) => format!("{line} after less than 1 ms"),
        None => line,
    }
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// How much later than the end of a request the command may learn what came of it.
const LATEST: Duration = Duration::from_secs(5);
