//! A lease cannot stop a process that is paused between its last look at the lease and its write.
//! A fencing token can, if the resource compares it: shown with real processes and a real store.
//!
//! Two processes change the balance of one account, each under a lease.
//! The first is stopped just before it writes, its lease ends, and the second has its turn.
//! When the first goes on, its write is late, and the store refuses it.
//!
//! `--without-fence` leaves the comparison out.
#![expect(clippy::print_stdout, reason = "it tells a story on the terminal")]

mod child;
mod servers;
mod show;
mod store;
mod worker;

use std::{process::ExitCode, time::Duration};

use stage::BoxError;
use worker::Worker;

/// Whether the store compares tokens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    WithFence,
    WithoutFence,
}

const LONGEST: Duration = Duration::from_secs(19);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(worker) = Worker::from_arguments(&arguments) {
        return verdict(worker.run().await, "worker");
    }
    let mode = match arguments[..] {
        [] => Mode::WithFence,
        ["--without-fence"] => Mode::WithoutFence,
        _ => {
            eprintln!("usage: fenced-store [--without-fence]");
            return ExitCode::from(2);
        }
    };
    let ended = tokio::time::timeout(LONGEST, show::run(mode)).await;
    let late = |_| Err(format!("not done after {LONGEST:?}").into());
    match ended.unwrap_or_else(late) {
        Ok(last) => {
            println!("fenced-store: {last}");
            ExitCode::SUCCESS
        }
        error => verdict(error.map(drop), "fenced-store"),
    }
}

fn verdict(ended: Result<(), BoxError>, who: &str) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{who}: failed: {error}");
            ExitCode::FAILURE
        }
    }
}
