//! `redlock jobs backfill`: asks all replicas to run the ticks of a range, and follows them.

use std::{collections::BTreeSet, time::Duration};

use clap::ArgGroup;
use redlock_core::Redlock;
use redlock_cron::{
    BACKFILL_LIFETIME, Backfill, JobMemory, MOST_BACKFILLED, PastRun, REQUEST_LIFETIME,
    chrono::{DateTime, NaiveDate, SecondsFormat, Utc},
    request_backfill, request_backfill_of_days, request_rerun,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    BETWEEN_LOOKS, JobName, LATEST, change::failed, client, known, remembered, run_line, time,
    until_taken,
};
use crate::{
    clock::{day, instant, millis, rounded},
    connection::ConnectionArgs,
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    operator::OperatorArgs,
    output::{LineMark, Output},
};

/// The arguments of `jobs backfill`.
#[derive(clap::Args, Debug)]
#[command(group(ArgGroup::new("ticks").args(["day", "from"]).required(true)))]
pub(super) struct BackfillArgs {
    /// The job: the namespace of its scheduler, a slash, and its name
    #[arg(value_name = "NAMESPACE/NAME")]
    job: String,

    /// A day in the time zone of the job, such as 2026-11-28; up to five times
    #[arg(long, value_name = "DATE", value_parser = day, conflicts_with = "to")]
    day: Vec<NaiveDate>,

    /// The begin of the range, such as 2026-11-01T02:00:00Z, or 2026-11-01 for midnight in UTC; a tick at this instant
    /// belongs to it
    #[arg(long, value_name = "TIME", value_parser = instant, requires = "to")]
    from: Option<DateTime<Utc>>,

    /// The end of the range in the same form, which must be over; a tick at this instant belongs to it
    #[arg(long, value_name = "TIME", value_parser = instant, requires = "from")]
    to: Option<DateTime<Utc>>,

    /// Also runs the ticks of which a run has ended well
    #[arg(long)]
    again: bool,

    /// Waits for the end of all runs, whose outcomes are the exit code
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Requests a backfill, and waits until a replica has counted its ticks, or until all of them have run.
pub(super) async fn run(args: BackfillArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let job: JobName = args.job.parse()?;
    let client = client(context, &settings).await?;
    known(&client, &job).await?;
    let (namespace, name) = (&job.namespace, &job.name);
    let days = args.day.iter().map(ToString::to_string);
    let of = match args.from.zip(args.to) {
        Some((from, to)) => [from, to].map(time).join("/"),
        None => days.collect::<Vec<_>>().join(","),
    };
    let moment = match args.from.zip(args.to) {
        None => request_backfill_of_days(&client, namespace, name, args.day, args.again).await,
        Some((from, to)) if args.again => request_rerun(&client, namespace, name, from, to).await,
        Some((from, to)) => request_backfill(&client, namespace, name, from, to).await,
    };
    let moment = moment.map_err(|error| failed(&error, ""))?;
    let what = if args.again {
        "backfill-again"
    } else {
        "backfill"
    };
    let subject = format!("{job} {of}");
    args.operator.log(&client, (what, &subject), context).await;
    let asked = moment.to_rfc3339_opts(SecondsFormat::Secs, true);
    let output = context.output;
    let lifetime = rounded(REQUEST_LIFETIME);
    output.progress(&format!(
        "asked all replicas at {asked} for a backfill of {job}; one counts its ticks within {lifetime}, or none does"
    ));
    let ended = |backfill: Option<&Backfill>, exit| {
        if output.is_json() {
            output.json(&to_json(&asked, backfill))?;
        }
        Ok(exit)
    };
    let counted = |memory: &JobMemory| newest(memory, &job, moment);
    let Some(backfill) = until_taken(&client, &job, "begun", counted).await? else {
        if !output.is_json() {
            output.marked(LineMark::Bad, &format!(
                "no replica has begun it within {lifetime}, and none does later: the log of the replicas tells why, \
                 under redlock::job, if one with this job is up"
            ))?;
        }
        return ended(None, Exit::No);
    };
    let (ticks, replica) = (backfill.ticks(), backfill.replica());
    if ticks > MOST_BACKFILLED {
        return Err(CommandError::wrong(format!(
            "nothing is started: {ticks} ticks of {job} are in this range, and a backfill has {MOST_BACKFILLED} at \
             most; narrow the range by --from and --to"
        )));
    }
    if ticks == 0 {
        if !output.is_json() {
            let line = format!("no tick of {job} is in this range, by the schedule of {replica}");
            output.marked(LineMark::Warning, &line)?;
        }
        return ended(Some(&backfill), Exit::No);
    }
    let begun = format!("{replica} has counted {ticks} ticks; replicas run them, the oldest first");
    if !args.wait {
        if !output.is_json() {
            output.marked(LineMark::Good, &begun)?;
        }
        return ended(Some(&backfill), Exit::Yes);
    }
    output.progress(&begun);
    let backfill = until_ended(&client, &job, backfill, output).await?;
    let is_well = backfill.runs().iter().all(is_ok);
    let exit = if is_well { Exit::Yes } else { Exit::Wrong };
    ended(Some(&backfill), exit)
}

/// Waits until all ticks have run, and prints each run that has ended.
async fn until_ended(
    client: &Redlock,
    job: &JobName,
    mut backfill: Backfill,
    output: Output,
) -> Result<Backfill, CommandError> {
    let end = Instant::now() + BACKFILL_LIFETIME + LATEST;
    let mut told = BTreeSet::new();
    loop {
        let memory = remembered(client, job).await?;
        backfill = newest(&memory, job, backfill.moment())?.unwrap_or(backfill);
        let nothing_runs = memory.is_known()
            && memory.running().is_none()
            && memory.free_in() == Some(Duration::ZERO);
        let are_all = backfill.runs().len() as u64 == backfill.ticks();
        let is_over = are_all && (nothing_runs || backfill.runs().iter().all(has_ended));
        for run in backfill.runs() {
            if (is_over || has_ended(run)) && told.insert(run.tick()) && !output.is_json() {
                print(run, output)?;
            }
        }
        if is_over {
            return Ok(backfill);
        }
        if Instant::now() >= end {
            let (claimed, ticks) = (backfill.runs().len(), backfill.ticks());
            let why = format!(
                "{claimed} of {ticks} ticks were claimed within {}, and the rest is not started",
                rounded(BACKFILL_LIFETIME)
            );
            return Err(CommandError::wrong(why));
        }
        sleep(BETWEEN_LOOKS).await;
    }
}

/// Returns what is remembered of a backfill of this moment, or later; an error if another was begun since.
fn newest(
    memory: &JobMemory,
    job: &JobName,
    moment: DateTime<Utc>,
) -> Result<Option<Backfill>, CommandError> {
    match memory.backfill() {
        Some(other) if other.moment() > moment => Err(CommandError::wrong(format!(
            "another backfill of {job} was begun at {}: no further tick of this one is started",
            other.moment().to_rfc3339_opts(SecondsFormat::Secs, true)
        ))),
        backfill => Ok(backfill.filter(|own| own.moment() == moment).cloned()),
    }
}

fn print(run: &PastRun, output: Output) -> std::io::Result<()> {
    let (mark, note) = match run.outcome() {
        Some("paused") => (LineMark::Warning, ""),
        Some(_) if is_ok(run) => (LineMark::Good, ""),
        Some(_) => (LineMark::Bad, ""),
        None => (
            LineMark::Bad,
            "; its replica no longer holds it, so it was cut short",
        ),
    };
    output.marked(mark, &format!("{}{note}", run_line(run)))
}

fn has_ended(run: &PastRun) -> bool {
    run.outcome().is_some()
}

fn is_ok(run: &PastRun) -> bool {
    matches!(run.outcome(), Some("ok" | "already-ok"))
}

fn to_json(asked: &str, backfill: Option<&Backfill>) -> Value {
    let runs = backfill.map(|backfill| {
        let runs = backfill.runs().iter();
        let runs = runs.map(|run| {
            json!({
                "tick": run.tick().to_rfc3339(),
                "replica": run.replica(),
                "outcome": run.outcome(),
                "took_ms": run.took().map(millis),
            })
        });
        runs.collect::<Vec<_>>()
    });
    json!({
        "asked": asked,
        "replica": backfill.map(Backfill::replica),
        "ticks": backfill.map(Backfill::ticks),
        "runs": runs.unwrap_or_default(),
    })
}
