//! What happens, in order.

use redlock_cron::chrono::{DateTime, Utc};

use stage::{BoxError, Nodes, Story};

use crate::{
    NAMESPACE,
    fleet::{Fleet, REPLICAS},
    jobs::{ALL, QUICK, REPORT},
    table::Table,
};

/// The whole show; what it returns ends its last line.
pub(crate) async fn whole() -> Result<String, BoxError> {
    let story = Story::begin();
    let nodes = Nodes::choose(NAMESPACE, story).await?;
    let mut fleet = Fleet::start(&nodes, &[]).await?;
    story.tell(format_args!(
        "{REPLICAS} replicas have the jobs {}",
        ALL.join(", ")
    ));
    runs(&mut fleet, QUICK, 4).await?;
    pause(&mut fleet, story).await?;
    kill(&mut fleet, story).await?;
    let so_far = fleet.books.ran(QUICK);
    runs(&mut fleet, QUICK, so_far + 3).await?;
    story.tell(format_args!(
        "those that are left are asked to end (SIGTERM)"
    ));
    let books = fleet.stop().await?;
    let table = Table {
        books: &books,
        jobs: &ALL,
    };
    story.tell(format_args!("who ran which tick:\n{table}"));

    let sum = books.sum();
    if sum.twice > 0 {
        return Err(format!("{sum}").into());
    }
    if sum.silent > MOST_ORPHANS {
        return Err(format!("{sum}, and {} ticks nobody ran or explained", sum.silent).into());
    }
    let skipped = sum.ticks - sum.runs;
    Ok(format!(
        "{sum}, {skipped} not run and told why, 1 run dropped with its lease, 1 replica killed in a run"
    ))
}

/// Replicas that take a lock on the job's name and claim no tick, judged as if they did.
pub(crate) async fn without_claim() -> Result<String, BoxError> {
    let story = Story::begin();
    let nodes = Nodes::choose(NAMESPACE, story).await?;
    let mut fleet = Fleet::start(&nodes, &["--without-claim"]).await?;
    story.tell(format_args!(
        "{REPLICAS} replicas have the job {QUICK}, with a lock on its name and no claim of the tick"
    ));
    runs(&mut fleet, QUICK, 6).await?;
    let books = fleet.stop().await?;
    let table = Table {
        books: &books,
        jobs: &[QUICK],
    };
    story.tell(format_args!("who ran which tick:\n{table}"));
    let sum = books.sum();
    match sum.twice {
        0 => Ok(format!("by chance, without the claim: {sum}")),
        _ => Err(format!("without the claim: {sum}").into()),
    }
}

/// Waits until so many ticks of a job have run.
async fn runs(fleet: &mut Fleet, job: &str, ticks: usize) -> Result<(), BoxError> {
    fleet
        .until(|books, _, _| (books.ran(job) >= ticks).then_some(()))
        .await
}

/// Pauses a replica in a run until its lease is over and another replica has begun a later tick.
async fn pause(fleet: &mut Fleet, story: Story) -> Result<(), BoxError> {
    for _ in 0..ATTEMPTS {
        let (paused, tick) = next_run(fleet).await?;
        fleet.replica(paused)?.freeze()?;
        story.tell(format_args!(
            "replica {paused} is stopped (SIGSTOP) in its run of {}",
            name(tick)
        ));
        let (other, later) = fleet.run_of(REPORT, tick, paused).await?;
        fleet.replica(paused)?.thaw()?;
        story.tell(format_args!(
            "replica {other} runs {}; replica {paused} goes on (SIGCONT), long after its lease",
            name(later)
        ));
        let outcome = fleet.until(|books, _, _| {
            let outcome = books.of(REPORT, tick)?.on(paused)?;
            Some(outcome.to_owned())
        });
        let outcome = outcome.await?;
        story.tell(format_args!(
            "replica {paused} says of its run of {}: {outcome}",
            name(tick)
        ));
        match outcome.as_str() {
            "lost" => return Ok(()),
            "ok" => story.tell(format_args!("it was quicker than we are; once more")),
            _ => return Err(format!("a run that was paused beyond its lease: {outcome}").into()),
        }
    }
    Err("no replica could be stopped in the middle of a run".into())
}

/// Kills a replica in a run, and waits until another one has begun a later tick.
async fn kill(fleet: &mut Fleet, story: Story) -> Result<(), BoxError> {
    let (killed, tick) = next_run(fleet).await?;
    fleet.kill(killed)?;
    story.tell(format_args!(
        "replica {killed} is killed (SIGKILL) in its run of {}",
        name(tick)
    ));
    let (other, later) = fleet.run_of(REPORT, tick, killed).await?;
    story.tell(format_args!("replica {other} runs {}", name(later)));
    Ok(())
}

/// The next run of the long job that begins.
async fn next_run(fleet: &mut Fleet) -> Result<(usize, DateTime<Utc>), BoxError> {
    fleet.run_of(REPORT, DateTime::<Utc>::MIN_UTC, NOBODY).await
}

fn name(tick: DateTime<Utc>) -> String {
    format!("{REPORT} {}", tick.format("%H:%M:%S"))
}

/// A replica that is killed may just have claimed a tick of each other job, and cannot report it any more.
const MOST_ORPHANS: usize = ALL.len() - 1;

const ATTEMPTS: usize = 2;

/// Replicas are numbered from 1.
const NOBODY: usize = 0;
