//! `redlock jobs`: what the nodes remember of jobs, and what a person does to one, without running it.

mod backfill;
mod change;
mod list;
mod trigger;

use std::time::Duration;

use clap::Subcommand;
use redlock_core::Redlock;
use redlock_cron::{
    JobMemory, JobRegistration, PastRun, REQUEST_LIFETIME,
    chrono::{DateTime, SecondsFormat, Utc},
    inspect,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

pub(crate) use self::list::{TOO_FEW, list};
use crate::{
    clock::millis,
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

/// A job, by the namespace of its scheduler and its name.
#[derive(Clone, Debug)]
struct JobName {
    namespace: String,
    name: String,
}

impl std::str::FromStr for JobName {
    type Err = CommandError;

    fn from_str(text: &str) -> Result<Self, CommandError> {
        let (namespace, name) = text.split_once('/').ok_or_else(|| {
            CommandError::wrong(
                "a job is called by its scheduler's namespace, a slash and its name, such as billing/close-day",
            )
        })?;
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl std::fmt::Display for JobName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Asks the nodes what they remember of a job.
async fn remembered(client: &Redlock, job: &JobName) -> Result<JobMemory, CommandError> {
    let memory = inspect(client, &job.namespace, &job.name).await;
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
    let memory = remembered(client, job).await?;
    if memory.is_known() && !memory.is_remembered() {
        return Err(CommandError::wrong(format!(
            "nothing was done: nothing is remembered of {job}; redlock jobs lists those that are known, and a scheduler \
             makes its jobs known when it starts"
        )));
    }
    Ok(memory)
}

/// Returns whether a job never ran and is not paused, as far as nodes have answered.
fn is_empty(memory: &JobMemory) -> bool {
    let never_ran = memory.watermark().is_none() && memory.runs().is_empty();
    never_ran && memory.is_paused() != Some(true)
}

/// Returns whether the lock of a job is held.
fn is_locked(memory: &JobMemory) -> bool {
    memory.free_in().is_some_and(|left| !left.is_zero())
}

/// Returns whether no scheduler has the job any more.
fn is_gone(memory: &JobMemory) -> bool {
    memory.registration().is_some_and(JobRegistration::is_gone)
}

/// Returns the next tick of a job that a scheduler has, as far as it is known.
pub(crate) fn next_tick(memory: &JobMemory) -> Option<DateTime<Utc>> {
    let registration = memory.registration().filter(|it| !it.is_gone());
    registration.and_then(JobRegistration::next_tick)
}

/// Returns how a job stands, in a word or two.
pub(crate) fn state(memory: &JobMemory) -> String {
    let state = match (memory.running(), memory.is_paused()) {
        (Some(run), Some(true)) => format!("paused, runs on {}", run.replica()),
        (Some(run), _) => format!("runs on {}", run.replica()),
        (None, Some(true)) if is_gone(memory) => "gone, paused".to_owned(),
        (None, Some(true)) => "paused".to_owned(),
        (None, _) if is_locked(memory) => "locked".to_owned(),
        (None, _) if memory.free_in().is_none() => return "unknown".to_owned(),
        (None, Some(false)) if is_gone(memory) => "gone".to_owned(),
        (None, Some(false)) => "idle".to_owned(),
        (None, None) => "idle, paused or not".to_owned(),
    };
    if memory.is_known() {
        state
    } else {
        format!("{state}, a part is missing")
    }
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

/// Returns what is remembered of a job, for programs.
pub(crate) fn to_json(memory: &JobMemory) -> Value {
    let runs = memory.runs().iter().map(|run| {
        json!({
            "tick": run.tick().to_rfc3339(),
            "attempt": run.attempt(),
            "by_hand": run.is_manual(),
            "backfill": run.is_backfill(),
            "replica": run.replica(),
            "outcome": run.outcome(),
            "not_started": run.why_not_started(),
            "took_ms": run.took().map(millis),
            "note": run.note(),
        })
    });
    let pause = memory.pause().map(|pause| {
        json!({
            "since": pause.since().to_rfc3339(),
            "until": pause.until().map(|until| until.to_rfc3339()),
            "by": pause.by(),
            "reason": pause.reason(),
        })
    });
    let registered = memory.registration().map(|it| {
        json!({
            "at": it.registered_at().to_rfc3339(),
            "replica": it.replica(),
            "pattern": it.pattern(),
            "zone": it.zone(),
            "policies": it.policies(),
            "gone": it.is_gone(),
        })
    });
    json!({
        // Whether anything is remembered of it; missing where too few nodes answered.
        "known": match (memory.is_remembered(), memory.is_known()) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        },
        // Whether enough nodes answered all that was asked.
        "complete": memory.is_known(),
        "paused": memory.is_paused(),
        "pause": pause,
        "running_on": memory.running().map(|run| run.replica()),
        "registered": registered,
        "next_tick": next_tick(memory).map(|tick| tick.to_rfc3339()),
        "newest_tick": memory.watermark().map(|tick| tick.to_rfc3339()),
        "locked_ms": memory.free_in().map(millis),
        "runs": runs.collect::<Vec<_>>(),
    })
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// How much later than the end of a request the command may learn what came of it.
const LATEST: Duration = Duration::from_secs(5);
