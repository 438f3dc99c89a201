//! What happens, in order.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use redlock_core::Redlock;
use redlock_sandbox::{Process, SERVER_VARIABLE, ServerBinary, ServerOptions, ServerSet};
use tokio::time::sleep;

use crate::{
    BoxError, Mode,
    ledger::{Ledger, TOTAL},
    teller::{Done, Teller},
};

const NODES: usize = 5;
const TELLERS: usize = 3;

/// Runs the show; what it returns is its last line.
pub(crate) async fn run(mode: Mode) -> Result<String, BoxError> {
    let mut servers = start().await?;
    let folder = tempfile::tempdir()?;
    let ledger = Ledger::at(folder.path());
    ledger.open()?;
    println!("{TELLERS} processes move money between accounts that have {TOTAL} in all");
    let teller = Teller {
        ledger: folder.path().to_string_lossy().into_owned(),
        mode,
    };
    let tellers: Vec<Process> = (0..TELLERS)
        .map(|_| spawn(&teller, &servers))
        .collect::<Result<_, _>>()?;
    let reading = tokio::task::spawn_blocking(|| tellers.into_iter().map(finish).collect());
    sleep(Duration::from_millis(300)).await;
    let victim = servers.iter_mut().next().ok_or("a node was started")?;
    victim.kill()?;
    println!("killed one of {NODES} nodes in the middle of it (SIGKILL)");
    let done: Result<Vec<Done>, BoxError> = reading.await?;
    let done = done?.into_iter().fold(Done::default(), Done::and);
    let total = ledger.total()?;
    let Done {
        transfers,
        audits,
        wrong,
        longest,
    } = done;
    let what = format!(
        "{transfers} transfers, {audits} audits of which {wrong} wrong, {total} of {TOTAL} left, 1 node killed, the longest wait took {longest} ms"
    );
    match (mode, wrong == 0 && total == TOTAL) {
        (Mode::AllKeys, true) => Ok(format!("bank: ok: {what}")),
        (Mode::AllKeys, false) => Err(format!("money was lost: {what}").into()),
        (Mode::OneKey, false) => Ok(format!("bank: with one key at a time: {what}")),
        (Mode::OneKey, true) => {
            Err("nothing was lost with one key at a time this time, which proves nothing".into())
        }
    }
}

/// Starts the nodes and vouches for them.
async fn start() -> Result<ServerSet, BoxError> {
    let binary = ServerBinary::find().map_err(|missing| {
        format!(
            "processes need nodes that all of them can reach: install redis-server or valkey-server, or name one by \
             {SERVER_VARIABLE}; {missing}"
        )
    })?;
    let servers = ServerSet::start(&binary, NODES, &ServerOptions::default())?;
    let redlock = Redlock::builder().nodes(servers.urls()).namespace("bank");
    let redlock = redlock.build().await?;
    redlock.dangerous_bless().await;
    redlock.close().await;
    Ok(servers)
}

fn spawn(teller: &Teller, servers: &ServerSet) -> Result<Process, BoxError> {
    let mut command = Process::command(std::env::current_exe()?);
    command
        .args(teller.to_arguments())
        .env("REDLOCK_NODES", servers.urls().join(","))
        .env("REDLOCK_NAMESPACE", "bank")
        .stdout(Stdio::piped());
    Ok(Process::spawn(command)?)
}

/// Waits for the end of a teller; returns what it did.
fn finish(mut teller: Process) -> Result<Done, BoxError> {
    let output = teller.take_stdout().ok_or("its output is piped")?;
    let last = BufReader::new(output).lines().map_while(Result::ok).last();
    let last = last.unwrap_or_default();
    let ended = teller.finish(Duration::from_secs(1))?;
    let done = Done::from_line(&last).filter(|_| ended.success());
    done.ok_or_else(|| format!("a teller failed: {last}").into())
}
