//! One job: whether it is paused, and how its last runs ended.

use redlock_core::NodeReport;

use super::{Job, Memory, client, memory::line};
use crate::{
    connection::Settings,
    context::Context,
    exit::{Exit, Failure},
    output::{Mark, Output, printable, rounded},
};

pub(super) async fn run(
    job: &Job,
    settings: &Settings,
    context: &Context,
) -> Result<Exit, Failure> {
    let client = client(context, settings).await?;
    let memory = Memory::of(&client, job).await?;
    print(job, &memory, context.output)?;
    Ok(match (memory.0.is_known(), memory.is_empty()) {
        (false, _) => Exit::NoQuorum,
        (true, true) => Exit::No,
        (true, false) => Exit::Yes,
    })
}

fn print(called: &Job, memory: &Memory, output: Output) -> std::io::Result<()> {
    if output.is_json() {
        return output.json(&memory.to_json());
    }
    let job = &memory.0;
    if job.is_known() && memory.is_empty() && !memory.is_locked() {
        let name = printable(&called.to_string());
        return output.line(&format!(
            "nothing is remembered of {name}; `redlock jobs` lists the jobs that are known"
        ));
    }
    if !job.is_known() {
        if memory.is_empty() && job.free_in().is_none() && job.is_paused().is_none() {
            output.line("unknown: too few nodes answered")?;
            return tell(job.nodes(), output);
        }
        output.line("a part is missing: too few nodes answered all that was asked")?;
        tell(job.nodes(), output)?;
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
    let runs = job
        .running()
        .map_or_else(String::new, |run| format!("; it runs on {}", run.replica()));
    output.line(&format!("{pause}; {lock}{runs}"))?;
    if job.runs().is_empty() && job.is_known() {
        output.line("no run is remembered")?;
    }
    for run in job.runs() {
        let mark = match run.outcome() {
            Some("ok") => Mark::Good,
            Some(_) => Mark::Warning,
            None => Mark::Note,
        };
        output.marked(mark, &line(run))?;
    }
    output.marked(Mark::Note, NOT_STARTED)
}

/// The nodes know no schedule, and after a loss of data not even the runs before it.
const NOT_STARTED: &str = "ticks that were not started, and runs from before the nodes lost their data, are not among \
                           these: the log of the replicas tells of them, under redlock::job";

/// Prints what each node reports, as the reason for a missing answer.
fn tell(nodes: &[NodeReport], output: Output) -> std::io::Result<()> {
    let mut nodes = nodes.iter();
    nodes.try_for_each(|node| output.marked(Mark::Bad, &node.to_string()))
}
