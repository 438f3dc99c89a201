//! Cron jobs of a service that runs as three replicas, each a process of its own.
//!
//! `jobs` has the jobs as one writes them, and `worker` the replica that has them.
//! The rest starts three replicas over five nodes, and counts which replica ran which tick.
//! It pauses one replica in a run for longer than its lease, and kills another one in a run.
//! The README beside this says how to run replicas by hand.
#![expect(clippy::print_stdout, reason = "it tells a story on the terminal")]

mod books;
mod careless;
mod fleet;
mod jobs;
mod line;
mod replica;
mod show;
mod table;
mod worker;

use std::{process::ExitCode, time::Duration};

use stage::limited;
use worker::Claims;

const USAGE: &str = "\
usage: singleton-jobs                     three replicas, of which one is paused and one is killed
       singleton-jobs --without-claim     replicas that take a lock on the job's name, and claim no tick
       singleton-jobs replica NAME [--dangerous-bless]";

/// What nodes and jobs are called by.
const NAMESPACE: &str = "singleton-jobs";

const LONGEST: Duration = Duration::from_secs(39);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match arguments[..] {
        [] => limited(LONGEST, show::whole()).await.map(Some),
        ["--without-claim"] => limited(LONGEST, show::without_claim()).await.map(Some),
        ["replica", name] => worker::run(name, Claims::Yes, false).await.map(|()| None),
        ["replica", name, "--dangerous-bless"] => {
            worker::run(name, Claims::Yes, true).await.map(|()| None)
        }
        ["replica", name, "--without-claim"] => {
            worker::run(name, Claims::No, false).await.map(|()| None)
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match ended {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(verdict)) => {
            println!("singleton-jobs: ok: {verdict}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("singleton-jobs: not ok: {error}");
            ExitCode::FAILURE
        }
    }
}
