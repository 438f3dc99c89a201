//! Three replicas elect a leader, each in a process of its own.
//!
//! The first leader is killed, the second is frozen, and the third is asked to end.
//! Each time another replica leads: after the ttl at most, or at once where the leader could resign.
#![expect(clippy::print_stdout, reason = "it tells a story on the terminal")]

mod candidate;
mod replica;

use std::{process::ExitCode, time::Duration};

use redlock_core::Redlock;
use redlock_sandbox::{SERVER_VARIABLE, ServerBinary, ServerOptions, ServerSet};
use replica::Replicas;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long a leader that crashed keeps the role: short, so that the story is.
const TTL: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match arguments[..] {
        [] => {
            let shown = tokio::time::timeout(LONGEST, show()).await;
            shown.unwrap_or_else(|_| Err(format!("not done after {LONGEST:?}").into()))
        }
        ["candidate", name, nodes] => candidate::run(name, nodes).await,
        _ => {
            eprintln!("usage: leader");
            return ExitCode::from(2);
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("leader: failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Shows the three ways in which a term ends.
async fn show() -> Result<(), BoxError> {
    let binary = ServerBinary::find().map_err(|missing| {
        format!(
            "install redis-server or valkey-server, or name one by {SERVER_VARIABLE}: {missing}"
        )
    })?;
    let servers = ServerSet::start(&binary, 3, &ServerOptions::default())?;
    // The servers are new, so they can have forgotten nothing.
    let vouching = Redlock::builder().nodes(servers.urls()).build().await?;
    vouching.dangerous_bless().await;
    vouching.close().await;

    let mut replicas = Replicas::start(["A", "B", "C"], &servers.urls().join(","))?;
    let first = replicas.next_term().await?;
    println!("{} is killed (SIGKILL)", first.leader);
    replicas.kill(&first.leader)?;
    let second = replicas.next_term().await?;
    println!(
        "{} is frozen (SIGSTOP), and so is its renewal",
        second.leader
    );
    replicas.freeze(&second.leader)?;
    let third = replicas.next_term().await?;
    println!("{} goes on (SIGCONT), after its term", second.leader);
    replicas.thaw(&second.leader)?;
    replicas.hears(&second.leader, candidate::LOST).await?;
    println!("{} is asked to end (SIGTERM)", third.leader);
    replicas.terminate(&third.leader)?;
    let fourth = replicas.next_term().await?;

    let terms = [&first, &second, &third, &fourth].map(|term| term.number);
    if !terms.is_sorted_by(|one, next| one < next) {
        return Err(format!("the numbers of terms do not grow: {terms:?}").into());
    }
    let seconds = |took: Duration| took.as_secs_f64();
    println!(
        "leader: ok: terms {terms:?}; with a ttl of {TTL:?}, the next one began {:.2} s after the kill, {:.2} s after the \
         freeze and {:.2} s after the resignation",
        seconds(second.after),
        seconds(third.after),
        seconds(fourth.after),
    );
    Ok(())
}
