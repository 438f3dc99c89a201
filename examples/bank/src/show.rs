//! What happens, in order.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use redlock_core::Redlock;
use redlock_sandbox::{Process, SERVER_VARIABLE, ServerBinary, ServerOptions, ServerSet};
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    task::spawn_blocking,
};

use crate::{
    BoxError, Mode,
    ledger::{Ledger, TOTAL},
    teller::{CUSTOMERS, Done, TRANSFER, Teller},
};

const NODES: usize = 5;
const TELLERS: usize = 3;
/// After how many transfers a node is killed.
const FIRST: usize = 30;
/// How many transfers may have begun before a node was killed, and end after it.
const IN_THE_MIDDLE: usize = TELLERS * CUSTOMERS;

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
    let (tell, mut told) = unbounded_channel();
    let mut reading = Vec::new();
    for _ in 0..TELLERS {
        let (teller, tell) = (spawn(&teller, &servers)?, tell.clone());
        reading.push(spawn_blocking(move || finish(teller, &tell)));
    }
    drop(tell);
    for _ in 0..FIRST {
        told.recv().await.ok_or("the tellers ended too early")?;
    }
    let victim = servers.iter_mut().next().ok_or("a node was started")?;
    victim.kill()?;
    let mut before = FIRST;
    while told.try_recv().is_ok() {
        before += 1;
    }
    println!("killed one of {NODES} nodes after {before} transfers (SIGKILL)");
    let mut done = Done::default();
    for teller in reading {
        done = done.and(teller.await??);
    }
    let after = done.transfers - before;
    if after <= 2 * IN_THE_MIDDLE {
        return Err(format!("only {after} transfers ended after a node was killed").into());
    }
    let total = ledger.total()?;
    let Done {
        transfers,
        audits,
        wrong,
        longest,
    } = done;
    let what = format!(
        "{transfers} transfers, {audits} audits of which {wrong} wrong, {total} of {TOTAL} left, 1 node killed, {after} transfers after that, the longest wait took {longest} ms"
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

/// Tells each transfer of a teller, and waits for its end; returns what it did.
fn finish(mut teller: Process, tell: &UnboundedSender<()>) -> Result<Done, BoxError> {
    let output = teller.take_stdout().ok_or("its output is piped")?;
    let mut last = String::new();
    for line in BufReader::new(output).lines() {
        last = line?;
        if last == TRANSFER {
            // The receiver may be gone.
            let _: Result<_, _> = tell.send(());
        }
    }
    let ended = teller.finish(Duration::from_secs(1))?;
    let done = Done::from_line(&last).filter(|_| ended.success());
    done.ok_or_else(|| format!("a teller failed: {last}").into())
}
