//! A bank with three tellers, each a process of its own.
//!
//! A transfer reads and writes two accounts, under one lease that has both of them alone; an audit reads all accounts, under
//! one lease that shares all of them with other audits.
//! One of the five nodes is killed on the way.
//! No money is lost, no audit sees a transfer half done, and no two callers wait for each other with half of what they need.
//!
//! `--one-key` locks one account at a time, as a lock on single keys does, and shows the damage.
#![expect(clippy::print_stdout, reason = "it tells a story on the terminal")]

mod ledger;
mod show;
mod teller;

use std::{process::ExitCode, time::Duration};

use teller::Teller;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What is locked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    /// All that is needed, at once.
    AllKeys,
    /// One account at a time.
    OneKey,
}

const LONGEST: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(teller) = Teller::from_arguments(&arguments) {
        return verdict(teller.run().await);
    }
    let mode = match arguments[..] {
        [] => Mode::AllKeys,
        ["--one-key"] => Mode::OneKey,
        _ => {
            eprintln!("usage: bank [--one-key]");
            return ExitCode::from(2);
        }
    };
    let ended = tokio::time::timeout(LONGEST, show::run(mode)).await;
    verdict(ended.unwrap_or_else(|_| Err(format!("not done after {LONGEST:?}").into())))
}

fn verdict(ended: Result<String, BoxError>) -> ExitCode {
    match ended {
        Ok(last) => {
            println!("{last}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("bank: failed: {error}");
            ExitCode::FAILURE
        }
    }
}
