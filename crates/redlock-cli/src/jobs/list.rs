//! All jobs that the nodes remember, or one: whether it is paused, and how its last runs ended.

use std::io;

use redlock_console::{
    look::jobs::{SilentNodes, TOO_FEW, is_locked, list, next_tick, state},
    snapshot::JobSnapshot,
};
use redlock_core::{NodeReport, Redlock};
use redlock_cron::{JobMemory, JobRegistration, UnclaimedTicks};
use serde_json::{Value, json};

use super::{JobName, client, remembered, run_line, time};
use crate::{
    clock::lasting,
    connection::NodeSettings,
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    keys,
    output::{LineMark, Output, printable, with_fields},
    probe,
};

/// Lists all jobs.
pub(super) async fn run(settings: &NodeSettings, context: &CommandContext) -> CommandResult {
    let client = client(context, settings).await?;
    let places = probe::connect(settings).await;
    let output = context.output;
    let listed = match list(&client, &places, settings, usize::MAX).await {
        Ok(listed) => listed,
        Err(silent) => {
            tell(&silent, output)?;
            return Ok(keys::exit_without_majority(&silent, "jobs"));
        }
    };
    if output.is_json() {
        let jobs = listed.jobs.iter();
        let jobs = jobs.map(|(job, memory)| JobSnapshot::of(job, memory, usize::MAX));
        output.json(&jobs.collect::<Vec<_>>())?;
    } else {
        for (job, memory) in &listed.jobs {
            let last = match memory.runs().first() {
                Some(run) if run.why_not_started().is_some() => run_line(run),
                Some(run) => format!("last run {}", run_line(run)),
                None => "no run is remembered".to_owned(),
            };
            // A pause keeps it from its start.
            let next = next_tick(memory).filter(|_| memory.is_paused() != Some(true));
            let next = next.map_or_else(String::new, |tick| format!("next tick {}; ", time(tick)));
            output.line(&format!(
                "{}  {}; {next}{last}",
                printable(job),
                state(memory)
            ))?;
        }
    }
    if listed.jobs.is_empty() && !listed.has_nameless {
        let namespace = settings.namespace();
        output.progress(&format!(
            "the nodes remember no job in the namespace {namespace}"
        ));
    }
    if listed.has_nameless {
        let words = "some names are too long to be shown: redlock jobs NAMESPACE/NAME shows what is under them";
        if output.is_json() {
            output.complain(words)?;
        } else {
            output.marked(LineMark::Note, words)?;
        }
    }
    tell(&listed.silent, output)?;
    Ok(Exit::Yes)
}

/// Returns the known jobs whose names begin so, and what is remembered of each.
///
/// # Errors
///
/// There is none, or no majority of the nodes said which jobs it remembers.
pub(super) async fn beginning_with(
    prefix: &str,
    client: &Redlock,
    settings: &NodeSettings,
    context: &CommandContext,
) -> Result<Vec<(JobName, JobMemory)>, CommandError> {
    let places = probe::connect(settings).await;
    let listed = list(client, &places, settings, usize::MAX).await;
    let listed = match listed {
        Ok(listed) => listed,
        Err(silent) => {
            tell(&silent, context.output)?;
            return Err(CommandError::NoQuorum(format!(
                "nothing was done: {TOO_FEW}"
            )));
        }
    };
    let jobs = listed.jobs.into_iter();
    let jobs = jobs.filter(|(job, _)| job.starts_with(prefix));
    let jobs: Result<Vec<_>, CommandError> = jobs
        .map(|(job, memory)| Ok((job.parse()?, memory)))
        .collect();
    match jobs? {
        none if none.is_empty() => Err(CommandError::wrong(format!(
            "nothing was done: no job is known that begins with {prefix}"
        ))),
        jobs => Ok(jobs),
    }
}

/// Reports the nodes that did not list their jobs, and why.
fn tell(silent: &SilentNodes, output: Output) -> io::Result<()> {
    let mut silent = silent.iter();
    silent.try_for_each(|(node, why)| output.bad_node(node, why))
}

/// Shows one job.
pub(super) async fn show(
    job: &JobName,
    settings: &NodeSettings,
    context: &CommandContext,
) -> CommandResult {
    let client = client(context, settings).await?;
    let memory = remembered(&client, job).await?;
    print(job, &memory, context.output).await?;
    Ok(match (memory.is_known(), memory.is_remembered()) {
        (false, _) => Exit::NoQuorum,
        (true, false) => Exit::No,
        (true, true) => Exit::Yes,
    })
}

async fn print(name: &JobName, job: &JobMemory, output: Output) -> std::io::Result<()> {
    if output.is_json() {
        let unclaimed = job.unclaimed().await;
        let unclaimed = unclaimed.iter().map(|ticks| {
            json!({
                "first": ticks.first().to_rfc3339(),
                "last": ticks.last().to_rfc3339(),
                "ticks": ticks.ticks(),
                "not_started": ticks.why_not_started(),
            })
        });
        let more = json!({"unclaimed": unclaimed.collect::<Vec<_>>()});
        return output.json(&with_fields(to_json(name, job)?, more));
    }
    if job.is_known() && !job.is_remembered() && !is_locked(job) {
        let name = printable(&name.to_string());
        return output.line(&format!(
            "nothing is remembered of {name}; `redlock jobs` lists the jobs that are known"
        ));
    }
    if !job.is_known() {
        if !job.is_remembered() && job.free_in().is_none() && job.is_paused().is_none() {
            output.line("unknown: too few nodes answered")?;
            return tell_nodes(job.nodes(), output);
        }
        output.line("a part is missing: too few nodes answered all that was asked")?;
        tell_nodes(job.nodes(), output)?;
    }
    match (job.pause(), job.is_paused()) {
        (Some(pause), _) => output.line(&pause.to_string())?,
        (None, None) => output.line("too few nodes say whether it is paused")?,
        (None, Some(_)) => output.line("not paused")?,
    }
    match job.free_in() {
        Some(left) if !left.is_zero() => {
            let left = lasting(Some(left));
            output.line(&format!("its lock is held, {left} unless renewed"))?;
        }
        Some(_) => output.line("its lock is free")?,
        None => output.line("too few nodes say whether its lock is free")?,
    }
    if let Some(run) = job.running() {
        output.line(&format!("it runs on {}", run.replica()))?;
    }
    if let Some(registration) = job.registration() {
        print_registration(registration, output)?;
    }
    if job.runs().is_empty() && job.is_known() {
        output.line("no run is remembered")?;
    }
    let unclaimed = job.unclaimed().await;
    let mut unclaimed = unclaimed.iter().peekable();
    for run in job.runs() {
        let is_older = |ticks: &&UnclaimedTicks| !run.is_manual() && run.tick() < ticks.first();
        while let Some(ticks) = unclaimed.next_if(is_older) {
            output.marked(LineMark::Note, &ticks.to_string())?;
        }
        let mark = match (run.outcome(), run.why_not_started()) {
            (Some("ok"), _) => LineMark::Good,
            (None, _) | (_, Some(_)) => LineMark::Note,
            (Some(_), None) => LineMark::Warning,
        };
        output.marked(mark, &run_line(run))?;
    }
    match job.registration().and_then(JobRegistration::schedule) {
        Some(_) => Ok(()),
        None => output.marked(LineMark::Note, UNCLAIMED),
    }
}

fn to_json(name: &JobName, memory: &JobMemory) -> io::Result<Value> {
    let snapshot = JobSnapshot::of(&name.to_string(), memory, usize::MAX);
    serde_json::to_value(snapshot).map_err(io::Error::other)
}

/// Prints the schedule, the policies and the next tick of a job.
fn print_registration(job: &JobRegistration, output: Output) -> std::io::Result<()> {
    let pattern = match job.zone() {
        Some(zone) => format!("{} in {zone}", job.pattern()),
        None => job.pattern().to_owned(),
    };
    match job.schedule() {
        Some(schedule) => output.line(&format!("its schedule is {pattern}: {schedule}"))?,
        None => output.line(&format!("its schedule is {pattern}, and more"))?,
    }
    if let Some(policies) = job.policies() {
        output.line(&format!("its policies are {policies}"))?;
    }
    if job.is_gone() {
        let since = time(job.registered_at());
        return output.line(&format!(
            "it is gone: no replica has registered it since {since}"
        ));
    }
    match job.next_tick() {
        Some(tick) => output.line(&format!("its next tick is {}", time(tick))),
        None if job.schedule().is_some() => output.line("it has no further tick"),
        None => output.line("its next tick is not known"),
    }
}

/// Prints what each node reports, as the reason for a missing answer.
fn tell_nodes(nodes: &[NodeReport], output: Output) -> std::io::Result<()> {
    let mut nodes = nodes.iter();
    nodes.try_for_each(|node| output.marked(LineMark::Bad, &node.to_string()))
}

/// Without the schedule, nothing tells which ticks were due.
const UNCLAIMED: &str = "ticks that no replica claimed are not among these, because the nodes do not know the schedule: \
                         the log of the replicas tells of them, under redlock::job";
