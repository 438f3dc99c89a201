//! `redlock jobs`: what the nodes remember of a job, without running it.

use redlock_cron::{JobMemory, PastRun, inspect};
use serde::Serialize;

use crate::{
    connection::Connection,
    context::Context,
    exit::{Exit, Failure},
    output::{Mark, Output, millis, rounded},
    standing::stand,
};

/// What can be asked of `jobs`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The job: the namespace of its scheduler, a slash, and its name
    #[arg(value_name = "NAMESPACE/NAME")]
    job: String,

    #[command(flatten)]
    connection: Connection,
}

/// Tells whether a job is paused and how its last runs ended.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let settings = args.connection.settings()?;
    let Some((namespace, name)) = args.job.split_once('/') else {
        let message = "a job is called by its scheduler's namespace, a slash and its name, such as billing/close-day";
        return Err(Failure::wrong(message));
    };
    let (client, reports) = stand(context, &settings).await?;
    let Some(client) = client else {
        let lines: Vec<String> = reports
            .iter()
            .map(|report| format!("\n  {report}"))
            .collect();
        return Err(Failure::NoQuorum(format!(
            "too few nodes can be asked{}",
            lines.concat()
        )));
    };
    let job = inspect(&client, namespace, name).await;
    let job = job.map_err(|error| Failure::wrong(error.to_string()))?;
    print(&job, context.output)?;
    Ok(match (job.is_known(), job.watermark(), job.runs()) {
        (false, ..) => Exit::NoQuorum,
        (true, None, []) => Exit::No,
        (true, ..) => Exit::Yes,
    })
}

fn print(job: &JobMemory, output: Output) -> std::io::Result<()> {
    if output.is_json() {
        return output.json(&Json {
            known: job.is_known(),
            paused: job.is_paused(),
            newest_tick: job.watermark().map(|tick| tick.to_rfc3339()),
            locked_ms: job.free_in().map(millis),
            runs: job.runs().iter().map(Run::of).collect(),
        });
    }
    if !job.is_known() {
        output.line("unknown: too few nodes answered")?;
        return job
            .nodes()
            .iter()
            .try_for_each(|node| output.marked(Mark::Bad, &node.to_string()));
    }
    let pause = match job.is_paused() {
        Some(true) => "paused",
        Some(false) => "not paused",
        None => "too few nodes say whether it is paused",
    };
    let lock = match job.free_in() {
        Some(left) if !left.is_zero() => {
            format!("its lock is held, for {} unless renewed", rounded(left))
        }
        Some(_) => "its lock is free".to_owned(),
        None => "too few nodes say whether its lock is free".to_owned(),
    };
    output.line(&format!("{pause}; {lock}"))?;
    if job.runs().is_empty() {
        output.line("no run is remembered")?;
    }
    for run in job.runs() {
        let mark = match run.outcome() {
            Some("ok") => Mark::Good,
            Some(_) => Mark::Warning,
            None => Mark::Note,
        };
        output.marked(mark, &run.to_string())?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Json {
    known: bool,
    paused: Option<bool>,
    newest_tick: Option<String>,
    locked_ms: Option<f64>,
    runs: Vec<Run>,
}

#[derive(Serialize)]
struct Run {
    tick: String,
    attempt: u32,
    by_hand: bool,
    replica: String,
    outcome: Option<String>,
    took_ms: Option<f64>,
}

impl Run {
    fn of(run: &PastRun) -> Self {
        Self {
            tick: run.tick().to_rfc3339(),
            attempt: run.attempt(),
            by_hand: run.is_manual(),
            replica: run.replica().to_owned(),
            outcome: run.outcome().map(str::to_owned),
            took_ms: run.took().map(millis),
        }
    }
}
