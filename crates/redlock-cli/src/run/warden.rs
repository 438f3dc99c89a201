//! The process that starts the command, leads its group, and outlives whoever holds the lock.

use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt,
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use futures_util::FutureExt;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, getpid, kill_process,
    kill_process_group, waitid, waitpid,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command},
    runtime,
    time::interval,
};

use super::{
    forward::Signals,
    line::{News, Until, since_start},
    terminal, tree,
};

/// The first argument of a warden, which no user types.
pub(crate) const WARDEN: &str = "__warden";

/// Runs the warden: the socket, the group that has the terminal else, and the command are its arguments.
pub(crate) fn warden(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let watched = runtime.and_then(|runtime| runtime.block_on(watch(arguments.collect())));
    // Who started it hears of a failure by the silence.
    watched.unwrap_or(ExitCode::FAILURE)
}

async fn watch(arguments: Vec<OsString>) -> io::Result<ExitCode> {
    let [socket, home, command, rest @ ..] = &*arguments else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if getpgrp() != getpid() {
        // It must never kill a group that it does not lead.
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // What the command starts stays below this process, whatever group it is in.
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let home = home.to_str().and_then(|id| Pid::from_raw(id.parse().ok()?));
    // Signals to the group are the command's.
    let mut signals = Signals::new()?;
    let (orders, mut news) = UnixStream::connect(socket).await?.into_split();
    let mut orders = BufReader::new(orders).lines();
    let Some(until) = order(&mut orders).await else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    if since_start() >= until.term {
        // So much time has passed meanwhile.
        return Err(io::ErrorKind::TimedOut.into());
    }
    let child = match Command::new(command).args(rest).spawn() {
        Ok(child) => child,
        Err(error) => return not_started(&error, home, &mut news).await,
    };
    pass_on_early(&child, &mut signals).await;
    // Nobody may be there to read it.
    drop(news.write_all(News::Started.to_string().as_bytes()).await);
    let (status, was_stopped) = attend(child, until, &mut orders, &mut news, &mut signals).await?;
    if was_stopped {
        // What the command has left must not go on either.
        kill_all();
    }
    give_back(home);
    let code = code_of(status);
    // As above.
    drop(
        news.write_all(News::Exited(code).to_string().as_bytes())
            .await,
    );
    Ok(code.into())
}

/// Waits for the end of the command, and brings it about when its time is over.
async fn attend(
    mut child: Child,
    mut until: Until,
    orders: &mut Lines<BufReader<OwnedReadHalf>>,
    news: &mut OwnedWriteHalf,
    signals: &mut Signals,
) -> io::Result<(ExitStatus, bool)> {
    let mut look = interval(LOOK);
    let mut was_stopped = false;
    loop {
        tokio::select! {
            biased;
            status = child.wait() => return Ok((status?, was_stopped)),
            told = order(orders) => match told {
                // Nobody renews the lease any more.
                Some(Until::OVER) | None => {
                    kill_all();
                    return Ok((child.wait().await?, true));
                }
                Some(later) => until = later,
            },
            _ = look.tick() => {
                reap(&child);
                let now = since_start();
                if now >= until.kill {
                    kill_all();
                    return Ok((child.wait().await?, true));
                }
                if now >= until.term && !was_stopped {
                    was_stopped = true;
                    // Nobody may be there to read it.
                    drop(news.write_all(News::Stopping.to_string().as_bytes()).await);
                    // The command may be stopped at the terminal, where it would not see the first of them.
                    for signal in [Signal::TERM, Signal::CONT] {
                        to_all(signal);
                        tree::signal_those_who_left(getpid(), signal);
                    }
                }
            }
            _ = signals.next() => {}
        }
    }
}

/// Passes on to the command what was sent to the group before the command was in it.
async fn pass_on_early(child: &Child, signals: &mut Signals) {
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    let Some(pid) = pid else { return };
    // The runtime hears of signals when it is given a turn.
    tokio::task::yield_now().await;
    while let Some(signal) = signals.next().now_or_never() {
        // Nobody waits for it yet, so the id is still its own.
        let _: Result<_, _> = kill_process(pid, signal);
    }
}

/// Waits for the next order; `None` if there will be none, or none that can be read.
async fn order(orders: &mut Lines<BufReader<OwnedReadHalf>>) -> Option<Until> {
    orders.next_line().await.ok()??.parse().ok()
}

async fn not_started(
    error: &io::Error,
    home: Option<Pid>,
    news: &mut OwnedWriteHalf,
) -> io::Result<ExitCode> {
    let code = match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    };
    give_back(home);
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "there is no such command".to_owned(),
        _ => format!("it cannot be run: {error}"),
    };
    let line = News::NotStarted { code, reason };
    news.write_all(line.to_string().as_bytes()).await?;
    Ok(code.into())
}

fn give_back(home: Option<Pid>) {
    if let Some(home) = home {
        terminal::give_back(home);
    }
}

/// Returns the exit code as shells give it.
fn code_of(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Takes note of the end of those that the command has orphaned and that have ended, so that they do not stay as zombies.
fn reap(command: &Child) {
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if !matches!(waitid(WaitId::All, any), Ok(Some(_))) {
        // There is none, as nearly always, and the look at all processes is spared.
        return;
    }
    let command = command.id().and_then(|id| i32::try_from(id).ok());
    for orphan in tree::zombies_of(getpid()) {
        // The runtime waits for the command itself.
        if Some(orphan.as_raw_nonzero().get()) != command {
            let _: Result<_, _> = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
    }
}

/// Kills all that the command has started; where that cannot be seen, the whole group and this process with it.
fn kill_all() {
    if !tree::kill_below(getpid()) {
        to_all(Signal::KILL);
    }
}

fn to_all(signal: Signal) {
    // The group is this process's own, so there is one.
    let _: Result<_, _> = kill_process_group(getpgrp(), signal);
}

/// How often the clock is looked at: timers stand still while the machine is suspended.
const LOOK: Duration = Duration::from_millis(50);
