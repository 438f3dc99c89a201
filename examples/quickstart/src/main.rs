//! The quickstart: what the project is for, shown on one machine in a few seconds.
//!
//! Three replicas of a service, each with its own lock client and HTTP server, move money between
//! the accounts of four customers while a job runs every second on one of them, and while one of
//! the lock's nodes dies.
//! The store that they share is as careless as a database without transactions; only the layer
//! keeps it right.
//!
//! `--without-lock` leaves the layer out.
#![expect(clippy::print_stdout, reason = "it tells a story on the terminal")]

mod bank;
mod clients;
mod jobs;
mod nodes;
mod replica;

use std::{process::ExitCode, sync::Arc, time::Duration};

use bank::Bank;
use nodes::Nodes;
use redlock_core::Config;
use replica::Replica;
use stage::{BoxError, Story};

/// What the command line asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    WithLock,
    WithoutLock,
}

const REPLICAS: usize = 3;
/// How long the show takes at most, once the nodes vote.
const LONGEST: Duration = Duration::from_secs(19);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Mode::WithLock,
        ["--without-lock"] => Mode::WithoutLock,
        _ => {
            eprintln!("usage: quickstart [--without-lock]");
            return ExitCode::from(2);
        }
    };
    match run(mode).await {
        Ok(verdict) => {
            println!("{verdict}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("quickstart: failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The verdict of a show that ends in time.
async fn in_time(show: impl Future<Output = Result<String, BoxError>>) -> Result<String, BoxError> {
    let ended = tokio::time::timeout(LONGEST, show).await;
    ended.map_err(|_| format!("not done after {LONGEST:?}"))?
}

/// Runs the show; the verdict is its last line.
async fn run(mode: Mode) -> Result<String, BoxError> {
    let story = Story::begin();
    let bank = Arc::new(Bank::open());
    if mode == Mode::WithoutLock {
        return in_time(without_lock(&story, &bank)).await;
    }

    let mut config = Config::from_env()?;
    let nodes = Nodes::choose(std::mem::take(&mut config.nodes), &story)?;
    let given_namespace = config.namespace.is_some();
    config
        .namespace
        .get_or_insert_with(|| "quickstart".to_owned());
    // Runs that share nodes have jobs of their own.
    let id = uuid::Uuid::new_v4().simple().to_string();
    let run = format!("quickstart-{}", &id[..8]);
    let mut replicas = Vec::new();
    let patient = nodes.are_deployed(given_namespace);
    for number in 1..=REPLICAS {
        let bank = Arc::clone(&bank);
        replicas.push(Replica::start(number, &nodes, &config, patient, bank).await?);
    }
    nodes
        .become_ready(&replicas[0].redlock, given_namespace, &story)
        .await?;
    in_time(with_lock(&story, &bank, &run, nodes, replicas)).await
}

/// The show itself, with nodes that vote.
async fn with_lock(
    story: &Story,
    bank: &Bank,
    run: &str,
    mut nodes: Nodes,
    replicas: Vec<Replica>,
) -> Result<String, BoxError> {
    story.tell(format_args!(
        "{REPLICAS} replicas listen on {}; each asks {} of {} nodes for every lock",
        list(replicas.iter().map(|replica| replica.address.to_string())),
        replicas[0].redlock.majority(),
        replicas[0].redlock.nodes(),
    ));

    let jobs = jobs::start(&replicas, run, story).await?;
    let addresses: Vec<_> = replicas.iter().map(|replica| replica.address).collect();
    let load = clients::Load::start(&addresses);
    load.wait_for(clients::TRANSFERS / 3).await;
    let killed = nodes.kill_one(story)?;
    let answers = load.finish(story).await?;
    let books = bank.check(story);
    let ticks = jobs.finish(story).await?;
    for replica in replicas {
        replica.stop().await;
    }

    let requests = clients::TRANSFERS;
    if answers.failed > 0 {
        let first = answers.first_failure.unwrap_or_default();
        return Err(format!("{} of {requests} requests failed; {first}", answers.failed).into());
    }
    if books.overlaps > 0 || books.lost > 0 {
        let (overlaps, lost) = (books.overlaps, books.lost);
        return Err(format!("{overlaps} overlaps and {lost} lost transfers with the lock").into());
    }
    let (due, runs) = ticks.check()?;
    Ok(format!(
        "quickstart: ok: {requests} requests, 0 overlaps, 0 lost, {due} ticks, {runs} runs, \
         {killed} node(s) killed"
    ))
}

/// The same load on replicas without the layer.
async fn without_lock(story: &Story, bank: &Arc<Bank>) -> Result<String, BoxError> {
    story.tell(format_args!(
        "the same replicas and the same load, without the layer"
    ));
    let mut addresses = Vec::new();
    let mut servers = tokio::task::JoinSet::new();
    for _ in 0..REPLICAS {
        addresses.push(replica::serve(replica::router(Arc::clone(bank)), &mut servers).await?);
    }
    let answers = clients::Load::start(&addresses).finish(story).await?;
    let books = bank.check(story);
    if answers.failed > 0 {
        return Err(answers.first_failure.unwrap_or_default().into());
    }
    if books.lost == 0 {
        return Err("nothing was lost without the lock this time, which proves nothing".into());
    }
    let (overlaps, lost) = (books.overlaps, books.lost);
    let requests = clients::TRANSFERS;
    Ok(format!(
        "quickstart: without the lock: {requests} requests, {overlaps} overlaps, {lost} lost"
    ))
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
